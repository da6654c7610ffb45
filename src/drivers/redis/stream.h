#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "drivers/redis/command.h"
#include "drivers/redis/url.h"
#include "weir/result.h"

namespace boost::asio {
class io_context;
namespace ssl {
class context;
}  // namespace ssl
}  // namespace boost::asio

namespace weir::redis {

using TlsContext = std::shared_ptr<boost::asio::ssl::context>;

/// Null if `options` request no TLS.
Result<TlsContext> MakeTlsContext(const TlsOptions& options);

/// One TCP or TLS connection to a server, from the attempt to its end: it opens, reads whatever
/// arrives, and is lost once. Bytes written in one turn of the event loop leave together.
///
/// Thread safety: belongs to the thread that runs `io`. Callbacks run there, never inside a call of
/// this class, and none after Close.
class Stream {
 public:
  struct Callbacks {
    std::function<void()> opened;
    std::function<void(std::string_view bytes)> read;
    std::function<void(std::string why)> lost;
  };

  Stream(boost::asio::io_context& io, const Endpoint& endpoint, TlsContext tls,
         Callbacks callbacks);
  /// As Close.
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void Write(const Command& command);
  void Close();

 private:
  class Link;
  std::shared_ptr<Link> link_;
};

}  // namespace weir::redis
