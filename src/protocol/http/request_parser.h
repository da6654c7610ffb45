#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "protocol/http/body.h"
#include "protocol/http/head.h"
#include "protocol/http/message.h"
#include "protocol/http/router.h"

namespace weir::http {

struct ParserLimits {
  std::uint32_t header_bytes = 16 * 1024;
  std::size_t headers = 100;
  /// A reactor reads a body in a few milliseconds at most: a thousand checks fit.
  std::size_t body_bytes = std::size_t{512} << 10U;
  std::size_t large_body_bytes = std::size_t{8} << 20U;  ///< where Router::TakesLarge
};

/// Reads whole HTTP/1.1 requests one after another from a growing buffer, without copying: its
/// results are views into that buffer.
///
/// Not thread-safe: one per connection.
class RequestParser {
 public:
  enum class Outcome {
    kNeedMore,
    kComplete,
    kFailed,  ///< answer failure_status() and close: where the next request begins is unknown
  };

  /// `router` says which paths take large bodies, and must outlive this; null: none.
  explicit RequestParser(const ParserLimits& limits, const Router* router = nullptr);
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;

  /// Continues parsing. `bytes` begins with the first byte of the request and holds all that was
  /// received; it may have moved in memory since. The body of a chunked request is joined in place.
  Outcome Parse(std::span<char> bytes);

  /// After kComplete: how many bytes the request took. Call Next before the next request is parsed.
  std::size_t consumed() const noexcept { return consumed_; }
  void Next();

  /// Complete requests: method, path, query, headers, body and keep_alive are set. Before that,
  /// once header_complete(): all but the body.
  Request& request() noexcept { return request_; }
  bool header_complete() const noexcept { return header_complete_; }
  /// The client waits for `100 Continue` before it sends the body.
  bool expects_continue() const noexcept { return head_.expects_continue && !minor_version_0(); }
  bool minor_version_0() const noexcept { return header_complete_ && request_.http_1_0; }

  int failure_status() const noexcept { return failure_.error_status; }
  std::string_view failure_message() const noexcept { return failure_.error; }

 private:
  Outcome ReadHead(std::span<char> bytes);
  Outcome ReadBody(std::span<char> bytes);
  Outcome Fail(int status, const char* why);
  void Describe();
  void Join(char* piece, std::size_t size);

  const ParserLimits limits_;
  const Router* const router_;
  const HeadLimits head_limits_;
  RequestHead head_;
  BodyScanner scanner_;
  Request request_;
  HeadResult failure_;
  const char* base_ = nullptr;  // where the request began at the last call
  std::size_t consumed_ = 0;
  std::size_t most_body_ = 0;  // of this request
  bool header_complete_ = false;
};

}  // namespace weir::http
