#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "protocol/http/message.h"

namespace weir::http {

struct ParserLimits {
  std::uint32_t header_bytes = 16 * 1024;
  std::size_t headers = 100;
  std::size_t body_bytes = std::size_t{1} << 20U;
};

/// Reads HTTP/1.1 requests one after another out of a growing buffer, without copying: what it
/// finds are views into that buffer. The work is done by Beast's parser.
///
/// Not thread-safe: one per connection.
class RequestParser {
 public:
  enum class Outcome {
    kNeedMore,
    kComplete,
    kFailed,  ///< answer failure_status() and close: where the next request begins is unknown
  };

  explicit RequestParser(const ParserLimits& limits);
  ~RequestParser();
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;

  /// Parses on. `bytes` begins with the first byte of the request, all that has come so far; it may
  /// have moved in memory since the last call. The body of a chunked request is joined in place.
  Outcome Parse(std::span<char> bytes);

  /// After kComplete: how many bytes the request took. Call Next before the next request is parsed.
  std::size_t consumed() const noexcept;
  void Next();

  /// Complete requests: method, path, query, headers, body and keep_alive are set. Before that,
  /// once header_complete(): all but the body.
  Request& request() noexcept { return request_; }
  bool header_complete() const noexcept;
  /// The client waits for `100 Continue` before it sends the body.
  bool expects_continue() const noexcept;
  /// A body was announced that is not complete yet: its full size, if known, else 0.
  std::size_t announced_body() const noexcept;
  bool minor_version_0() const noexcept;

  int failure_status() const noexcept;
  std::string_view failure_message() const noexcept;

 private:
  class Core;

  const ParserLimits limits_;
  Request request_;
  std::unique_ptr<Core> core_;
};

}  // namespace weir::http
