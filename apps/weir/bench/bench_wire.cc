#include "bench/bench_wire.h"

#include <charconv>
#include <optional>

#include "base/json_writer.h"
#include "protocol/http/error.h"

namespace weir::app {
namespace {

constexpr std::size_t kMaxPending = std::size_t{1} << 24U;

class HttpWire final : public BenchWire {
 public:
  explicit HttpWire(std::string host) : host_(std::move(host)) {}

  void Ask(std::string_view key, std::string& out) override {
    body_.clear();
    JsonWriter(body_).BeginObject().Field("key", key).EndObject();
    out += "POST /v1/check HTTP/1.1\r\nHost: " + host_ +
           "\r\nContent-Type: application/json\r\nContent-Length: ";
    out += std::to_string(body_.size()) + "\r\n\r\n" + body_;
  }

  bool Take(std::string_view bytes, std::vector<HeardReply>& replies, std::string&) override {
    pending_ += bytes;
    std::string_view rest = pending_;
    while (const auto size = ReplySize(rest)) {
      if (*size == 0) return false;
      if (*size > rest.size()) break;
      const std::string_view reply = rest.substr(0, *size);
      const bool ok = reply.substr(9, 3) == "200";
      const bool allowed = reply.find("\"allowed\":true") != std::string_view::npos;
      replies.push_back({next_++, !ok       ? Heard::kError
                                  : allowed ? Heard::kAllowed
                                            : Heard::kLimited});
      rest.remove_prefix(*size);
    }
    pending_.erase(0, pending_.size() - rest.size());
    return pending_.size() <= kMaxPending;
  }

 private:
  /// The size of the first reply; nothing while that is not known, 0 if it is not a valid reply.
  static std::optional<std::size_t> ReplySize(std::string_view text) {
    constexpr std::string_view kLength = "Content-Length: ";
    const std::size_t head = text.find("\r\n\r\n");
    if (head == std::string_view::npos) return std::nullopt;
    const std::size_t at = text.substr(0, head).find(kLength);
    if (!text.starts_with("HTTP/1.1 ") || at == std::string_view::npos) return 0;
    std::size_t length = 0;
    std::from_chars(text.data() + at + kLength.size(), text.data() + head, length);
    return head + 4 + length;
  }

  const std::string host_;
  std::string body_;
  std::string pending_;
  std::uint64_t next_ = 0;
};

class RespWire final : public BenchWire {
 public:
  void Ask(std::string_view key, std::string& out) override {
    out += "*2\r\n$10\r\nWEIR.CHECK\r\n$" + std::to_string(key.size()) + "\r\n";
    out.append(key).append("\r\n");
  }

  bool Take(std::string_view bytes, std::vector<HeardReply>& replies, std::string&) override {
    pending_ += bytes;
    std::size_t done = 0;
    for (std::size_t at = 0; at < pending_.size(); done = at) {
      const std::size_t begin = at;
      const int end = Skip(at);
      if (end < 0) return false;
      if (end == 0) break;
      const std::string_view reply = std::string_view(pending_).substr(begin, at - begin);
      replies.push_back({next_++, WhatSays(reply)});
    }
    pending_.erase(0, done);
    return pending_.size() <= kMaxPending;
  }

 private:
  /// Reads [limited, limit, …], however many values follow; anything else does not answer a check.
  static Heard WhatSays(std::string_view reply) {
    const std::string_view first = reply.substr(reply.find('\n') + 1);
    if (reply.front() != '*') return Heard::kError;
    if (first.starts_with(":0\r")) return Heard::kAllowed;
    return first.starts_with(":1\r") ? Heard::kLimited : Heard::kError;
  }

  /// Moves `at` past the value that begins there: 1; 0 if it is not complete, -1 if it is invalid.
  int Skip(std::size_t& at) const {
    std::int64_t values = 1;
    while (values > 0) {
      const std::size_t line = pending_.find("\r\n", at);
      if (line == std::string::npos) return 0;
      std::int64_t number = 0;
      std::from_chars(pending_.data() + at + 1, pending_.data() + line, number);
      const char kind = pending_[at];
      at = line + 2;
      --values;
      if (kind == '*') {
        values += number;
      } else if (kind == '$') {
        if (number >= 0) at += static_cast<std::size_t>(number) + 2;
      } else if (kind != ':' && kind != '+' && kind != '-') {
        return -1;
      }
      if (at > pending_.size()) return 0;
    }
    return 1;
  }

  std::string pending_;
  std::uint64_t next_ = 0;
};

}  // namespace

std::unique_ptr<BenchWire> MakeHttpWire(std::string host) {
  return std::make_unique<HttpWire>(std::move(host));
}
std::unique_ptr<BenchWire> MakeRespWire() { return std::make_unique<RespWire>(); }

}  // namespace weir::app
