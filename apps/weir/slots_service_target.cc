#include <netdb.h>
#include <simdjson.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <charconv>
#include <utility>

#include "protocol/http/error.h"
#include "slots_target.h"

// Speaks HTTP/1.1 to a running service: one request at a time per call, a connection each, which is
// cheap next to a batch of thousands.

namespace weir::app {
namespace {

namespace dom = simdjson::dom;

constexpr int kTimeoutSeconds = 120;

struct Reply {
  int status = 0;
  std::string body;
};

Error Unreachable(const std::string& where, const char* what) {
  return {Code::kUnavailable, where + ": " + what};
}

/// A TCP connection that closes itself. Not thread-safe.
class Socket {
 public:
  Socket(const std::string& host, const std::string& port) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) return;
    for (addrinfo* at = found; at != nullptr && fd_ < 0; at = at->ai_next) {
      fd_ = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
      if (fd_ >= 0 && connect(fd_, at->ai_addr, at->ai_addrlen) != 0) {
        close(fd_);
        fd_ = -1;
      }
    }
    freeaddrinfo(found);
    const timeval patience{kTimeoutSeconds, 0};
    if (fd_ >= 0) setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  }
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  bool ok() const { return fd_ >= 0; }

  bool Send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  /// Everything until the peer closes.
  bool ReceiveAll(std::string& out) const {
    std::string buffer(std::size_t{1} << 18U, '\0');
    for (;;) {
      const ssize_t got = recv(fd_, buffer.data(), buffer.size(), 0);
      if (got < 0) return false;
      if (got == 0) return true;
      out.append(buffer, 0, static_cast<std::size_t>(got));
    }
  }

 private:
  int fd_ = -1;
};

std::string Escaped(const std::string& text) {
  constexpr const char* kHex = "0123456789ABCDEF";
  std::string out;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '-' || c == '_' || c == '.' || c == '~') {
      out += c;
    } else {
      out += '%';
      out += kHex[byte >> 4U];
      out += kHex[byte & 15U];
    }
  }
  return out;
}

std::string Text(const dom::object& object, const char* field) {
  std::string_view text;
  return object[field].get(text) == simdjson::SUCCESS ? std::string(text) : std::string();
}

std::int64_t Number(const dom::object& object, const char* field) {
  std::int64_t number = 0;
  return object[field].get(number) == simdjson::SUCCESS ? number : 0;
}

slots::Millis Instant(const dom::object& object, const char* field) {
  Result<slots::Millis> instant = slots::ParseInstant(Text(object, field));
  return instant.ok() ? *instant : 0;
}

slots::Answer ReadAnswer(const dom::object& object) {
  const std::string status = Text(object, "status");
  slots::Answer answer;
  answer.outcome = status == "NEW"              ? slots::Outcome::kNew
                   : status == "EXISTING"       ? slots::Outcome::kExisting
                   : status == "UNKNOWN_CONFIG" ? slots::Outcome::kUnknownConfig
                                                : slots::Outcome::kExhausted;
  answer.slot = {Text(object, "eventId"),        Text(object, "configName"),
                 Text(object, "tenant"),         Instant(object, "requestedTime"),
                 Instant(object, "windowStart"), Instant(object, "scheduledTime")};
  return answer;
}

slots::Config ReadConfig(const dom::object& object) {
  slots::Config config{.name = Text(object, "configName")};
  config.version = Number(object, "version");
  Result<slots::Millis> size = slots::ParseDuration(Text(object, "windowSize"));
  config.window_size = size.ok() ? *size : 1;
  config.max_per_window = Number(object, "maxPerWindow");
  config.headroom = Number(object, "headroom");
  return config;
}

void AppendAsk(std::string& out, const slots::Ask& ask) {
  out += "{\"eventId\":";
  http::AppendJsonString(out, ask.event_id);
  out += ",\"configName\":";
  http::AppendJsonString(out, ask.config);
  out += ",\"requestedTime\":\"" + slots::FormatInstant(ask.requested) + '"';
  if (!ask.tenant.empty()) {
    out += ",\"tenant\":";
    http::AppendJsonString(out, ask.tenant);
  }
  out += '}';
}

/// A running service. Thread-safe: every call has a connection of its own.
class ServiceTarget final : public SlotsTarget {
 public:
  ServiceTarget(std::string host, std::string port, std::string key)
      : host_(std::move(host)), port_(std::move(port)), key_(std::move(key)) {}

  Result<std::vector<slots::Answer>> Assign(std::vector<slots::Ask> asks) override {
    std::string body = "{\"events\":[";
    for (std::size_t i = 0; i < asks.size(); ++i) {
      if (i > 0) body += ',';
      AppendAsk(body, asks[i]);
    }
    dom::parser parser;
    auto object = Exchange(parser, "POST", "/api/v1/slots/batch", body + "]}");
    if (!object.ok()) return object.error();
    dom::array list;
    if ((*object)["slots"].get(list) != simdjson::SUCCESS) return Garbled();
    std::vector<slots::Answer> answers;
    for (dom::element one : list) {
      dom::object fields;
      if (one.get(fields) != simdjson::SUCCESS) return Garbled();
      answers.push_back(ReadAnswer(fields));
    }
    if (answers.size() != asks.size()) return Garbled();
    return answers;
  }

  Result<slots::Config> GetConfig(const std::string& name) override {
    dom::parser parser;
    auto object = Exchange(parser, "GET", "/admin/rate-limit/config/" + Escaped(name), {});
    if (!object.ok()) return object.error();
    return ReadConfig(*object);
  }

  Result<std::vector<slots::WindowLoad>> ListWindows(const std::string& config, slots::Millis from,
                                                     std::size_t limit) override {
    dom::parser parser;
    auto object = Exchange(parser, "GET",
                           "/admin/rate-limit/windows?config=" + Escaped(config) +
                               "&from=" + Escaped(slots::FormatInstant(from)) +
                               "&limit=" + std::to_string(limit),
                           {});
    if (!object.ok()) return object.error();
    dom::object about;
    dom::array list;
    if ((*object)["config"].get(about) != simdjson::SUCCESS ||
        (*object)["windows"].get(list) != simdjson::SUCCESS) {
      return Garbled();
    }
    const slots::Millis size = ReadConfig(about).window_size;
    std::vector<slots::WindowLoad> windows;
    for (dom::element one : list) {
      dom::object fields;
      if (one.get(fields) != simdjson::SUCCESS) return Garbled();
      windows.push_back({Instant(fields, "windowStart"), size, Number(fields, "count"),
                         Number(fields, "carried"), Text(fields, "status") == "OPEN"});
    }
    return windows;
  }

  Result<slots::Findings> Verify() override {
    dom::parser parser;
    auto object = Exchange(parser, "GET", "/admin/rate-limit/verify", {});
    if (!object.ok()) return object.error();
    slots::Findings findings{Number(*object, "windows"), Number(*object, "slots"),
                             Number(*object, "problems")};
    dom::array examples;
    if ((*object)["examples"].get(examples) == simdjson::SUCCESS) {
      for (dom::element one : examples) {
        std::string_view text;
        if (one.get(text) == simdjson::SUCCESS) findings.examples.emplace_back(text);
      }
    }
    return findings;
  }

 private:
  Error Garbled() const { return Unreachable(host_ + ":" + port_, "the answer is not ours"); }

  Result<Reply> Send(const char* method, const std::string& target, const std::string& body) const {
    const std::string where = host_ + ":" + port_;
    const Socket socket(host_, port_);
    if (!socket.ok()) return Unreachable(where, "cannot connect; is `weir serve` running there?");
    std::string request = std::string(method) + " " + target + " HTTP/1.1\r\nHost: " + where +
                          "\r\nConnection: close\r\nContent-Type: application/json\r\n";
    if (!key_.empty()) request += "X-API-Key: " + key_ + "\r\n";
    request += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    std::string answer;
    if (!socket.Send(request) || !socket.ReceiveAll(answer)) {
      return Unreachable(where, "the connection was lost");
    }
    const std::size_t head = answer.find("\r\n\r\n");
    if (head == std::string::npos || !answer.starts_with("HTTP/1.1 ") || answer.size() < 12) {
      return Unreachable(where, "the answer is not HTTP");
    }
    Reply reply;
    std::from_chars(answer.data() + 9, answer.data() + 12, reply.status);
    reply.body = answer.substr(head + 4);
    return reply;
  }

  Result<dom::object> Exchange(dom::parser& parser, const char* method, const std::string& target,
                               const std::string& body) const {
    Result<Reply> reply = Send(method, target, body);
    if (!reply.ok()) return reply.error();
    dom::object object;
    if (parser.parse(reply->body).get(object) != simdjson::SUCCESS) return Garbled();
    if (reply->status / 100 != 2) {
      const Code code = reply->status == 404   ? Code::kNotFound
                        : reply->status >= 500 ? Code::kUnavailable
                                               : Code::kInvalidArgument;
      return Error{code, Text(object, "message")};
    }
    return object;
  }

  const std::string host_;
  const std::string port_;
  const std::string key_;
};

}  // namespace

Result<std::unique_ptr<SlotsTarget>> OpenService(const std::string& url, const std::string& key) {
  constexpr std::string_view kScheme = "http://";
  std::string rest = url.starts_with(kScheme) ? url.substr(kScheme.size()) : url;
  while (!rest.empty() && rest.back() == '/') rest.pop_back();
  const std::size_t colon = rest.rfind(':');
  if (rest.empty() || rest.find('/') != std::string::npos ||
      rest.find("://") != std::string::npos) {
    return Error{Code::kInvalidArgument, "--url must be like http://127.0.0.1:8080"};
  }
  std::string host = rest.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  std::string port = colon == std::string::npos ? "80" : rest.substr(colon + 1);
  return std::unique_ptr<SlotsTarget>(
      std::make_unique<ServiceTarget>(std::move(host), std::move(port), key));
}

}  // namespace weir::app
