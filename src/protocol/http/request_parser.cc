#include "protocol/http/request_parser.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <cstring>
#include <optional>

#include "protocol/http/ascii.h"

namespace weir::http {
namespace {

namespace beast = boost::beast;
using beast::error_code;

std::string_view View(beast::string_view text) { return {text.data(), text.size()}; }

/// The part of a request target that is routed: path and query, of origin form or absolute form.
std::string_view StripAuthority(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (target.size() < scheme.size() ||
        !EqualsIgnoringCase(target.substr(0, scheme.size()), scheme)) {
      continue;
    }
    const std::size_t path = target.find_first_of("/?", scheme.size());
    // "http://host" means the root: its second slash is as good a "/" as any.
    return path == std::string_view::npos ? target.substr(scheme.size() - 1, 1)
                                          : target.substr(path);
  }
  return target;
}

/// Receives what Beast finds. Made anew for every request, in the same memory.
class Receiver final : public beast::http::basic_parser<true> {
 public:
  Receiver(Request& request, const ParserLimits& limits) : request_(request), limits_(limits) {
    eager(true);
    header_limit(limits.header_bytes);
    body_limit(limits.body_bytes);
  }

  /// Tells where the buffer is: `begin` up to `end`.
  void Within(char* begin, char* end) {
    begin_ = begin;
    end_ = end;
  }

  bool too_many_headers() const noexcept { return too_many_headers_; }
  bool expects_continue() const noexcept { return expects_continue_; }
  bool minor_version_0() const noexcept { return minor_version_0_; }

 private:
  void on_request_impl(beast::http::verb, beast::string_view method, beast::string_view target,
                       int version, error_code&) override {
    minor_version_0_ = version == 10;
    request_.method = View(method);
    const std::string_view routed = StripAuthority(View(target));
    const std::size_t fragment = std::min(routed.find('#'), routed.size());
    const std::size_t query = routed.substr(0, fragment).find('?');
    if (query == std::string_view::npos) {
      request_.path = routed.substr(0, fragment);
      request_.query = {};
    } else {
      request_.path = routed.substr(0, query);
      request_.query = routed.substr(query + 1, fragment - query - 1);
    }
  }

  void on_response_impl(int, beast::string_view, int, error_code&) override {}

  void on_field_impl(beast::http::field field, beast::string_view name, beast::string_view value,
                     error_code& error) override {
    // A field after the body is a trailer: it must not speak for the request, which may have been
    // let in by its header.
    if (is_header_done()) return;
    if (request_.headers.size() >= limits_.headers) {
      too_many_headers_ = true;
      error = beast::http::error::header_limit;
      return;
    }
    // A value folded over several lines is put together elsewhere and would not outlive this call;
    // RFC 9112 says to refuse such requests.
    if (!value.empty() && (value.data() < begin_ || value.data() >= end_)) {
      error = beast::http::error::bad_obs_fold;
      return;
    }
    // Beast would take a body in any other coding for the next request.
    if (field == beast::http::field::transfer_encoding &&
        !EqualsIgnoringCase(View(value), "chunked")) {
      error = beast::http::error::bad_transfer_encoding;
      return;
    }
    request_.headers.push_back({View(name), View(value)});
    if (field == beast::http::field::expect && EqualsIgnoringCase(View(value), "100-continue")) {
      expects_continue_ = true;
    }
  }

  void on_header_impl(error_code&) override {}
  void on_body_init_impl(boost::optional<std::uint64_t> const&, error_code&) override {}

  std::size_t on_body_impl(beast::string_view piece, error_code&) override {
    Append(piece);
    return piece.size();
  }

  void on_chunk_header_impl(std::uint64_t, beast::string_view, error_code&) override {}

  std::size_t on_chunk_body_impl(std::uint64_t, beast::string_view piece, error_code&) override {
    Append(piece);
    return piece.size();
  }

  void on_finish_impl(error_code&) override {}

  void Append(beast::string_view piece) {
    if (piece.empty()) return;
    if (request_.body.empty()) {
      request_.body = View(piece);
      return;
    }
    // The body so far ends before this piece, perhaps with a chunk's header between: close the gap.
    char* const end = begin_ + (request_.body.data() - begin_) + request_.body.size();
    if (end != piece.data()) std::memmove(end, piece.data(), piece.size());
    request_.body = {request_.body.data(), request_.body.size() + piece.size()};
  }

  Request& request_;
  const ParserLimits& limits_;
  char* begin_ = nullptr;
  char* end_ = nullptr;
  bool too_many_headers_ = false;
  bool expects_continue_ = false;
  bool minor_version_0_ = false;
};

void Shift(std::string_view& view, const char* from, const char* to) {
  if (!view.empty()) view = {to + (view.data() - from), view.size()};
}

void MoveViews(Request& request, const char* from, const char* to) {
  Shift(request.method, from, to);
  Shift(request.path, from, to);
  Shift(request.query, from, to);
  Shift(request.body, from, to);
  for (Header& header : request.headers) {
    Shift(header.name, from, to);
    Shift(header.value, from, to);
  }
}

// A chunked body that is not over has at least "0\r\n\r\n" to come, and Beast insists on seeing it
// whole once it has seen its first line.
constexpr std::size_t kLeastChunkedRest = 5;

}  // namespace

class RequestParser::Core {
 public:
  Core(Request& request, const ParserLimits& limits) { receiver.emplace(request, limits); }

  std::optional<Receiver> receiver;
  std::size_t consumed = 0;
  char* base = nullptr;
  error_code error;
};

RequestParser::RequestParser(const ParserLimits& limits)
    : limits_(limits), core_(std::make_unique<Core>(request_, limits_)) {}

RequestParser::~RequestParser() = default;

RequestParser::Outcome RequestParser::Parse(std::span<char> bytes) {
  Core& core = *core_;
  if (core.base != nullptr && core.base != bytes.data()) {
    MoveViews(request_, core.base, bytes.data());
  }
  core.base = bytes.data();
  core.receiver->Within(bytes.data(), bytes.data() + bytes.size());
  while (core.consumed < bytes.size()) {
    const auto rest = bytes.subspan(core.consumed);
    if (core.receiver->is_header_done() && core.receiver->chunked() &&
        rest.size() < kLeastChunkedRest) {
      return Outcome::kNeedMore;
    }
    core.error = {};
    const std::size_t n =
        core.receiver->put(boost::asio::const_buffer(rest.data(), rest.size()), core.error);
    core.consumed += n;
    if (core.error == beast::http::error::need_more) return Outcome::kNeedMore;
    if (core.error) return Outcome::kFailed;
    if (core.receiver->is_done()) {
      request_.keep_alive = core.receiver->keep_alive();
      request_.http_1_0 = core.receiver->minor_version_0();
      return Outcome::kComplete;
    }
    if (n == 0) break;
  }
  return Outcome::kNeedMore;
}

std::size_t RequestParser::consumed() const noexcept { return core_->consumed; }

void RequestParser::Next() {
  request_.method = request_.path = request_.query = request_.body = {};
  request_.headers.clear();
  request_.params.clear();
  core_->consumed = 0;
  core_->base = nullptr;
  core_->receiver.emplace(request_, limits_);
}

bool RequestParser::header_complete() const noexcept { return core_->receiver->is_header_done(); }

bool RequestParser::expects_continue() const noexcept {
  return core_->receiver->expects_continue() && !core_->receiver->minor_version_0();
}

std::size_t RequestParser::announced_body() const noexcept {
  if (!header_complete()) return 0;
  const auto length = core_->receiver->content_length();
  return length ? static_cast<std::size_t>(std::min<std::uint64_t>(*length, limits_.body_bytes))
                : 0;
}

bool RequestParser::minor_version_0() const noexcept { return core_->receiver->minor_version_0(); }

int RequestParser::failure_status() const noexcept {
  const error_code& error = core_->error;
  if (error == beast::http::error::header_limit) return 431;
  if (error == beast::http::error::body_limit) return 413;
  if (error == beast::http::error::bad_version) return 505;
  return 400;
}

std::string_view RequestParser::failure_message() const noexcept {
  switch (failure_status()) {
    case 431:
      return core_->receiver->too_many_headers() ? "too many header fields"
                                                 : "the header is too large";
    case 413:
      return "the body is too large";
    case 505:
      return "only HTTP/1.1 and HTTP/1.0 are spoken here";
    default:
      return "not a well-formed HTTP/1.1 request";
  }
}

}  // namespace weir::http
