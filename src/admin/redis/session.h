#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <initializer_list>
#include <memory>
#include <string_view>

#include "drivers/redis/cluster.h"
#include "drivers/redis/connection.h"
#include "drivers/redis/script.h"
#include "drivers/redis/url.h"
#include "weir/result.h"

namespace weir::policy::redis {

/// The keys of a call, all in one slot.
using Keys = std::initializer_list<std::string_view>;

/// Calls scripts one after the other and waits for each answer, on a server or in a cluster. The
/// connection is made by the first call and again after it is lost.
///
/// Thread safety: belongs to one thread at a time, but Abort may be called from any.
class Session {
 public:
  Session(const weir::redis::Address& address, std::chrono::milliseconds patience);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// `arguments` follow the keys.
  weir::redis::Answer Call(const weir::redis::Script& script, Keys keys,
                           const weir::redis::Command& arguments);
  /// The same for a call that changes nothing: it is repeated if the connection had died unnoticed.
  /// A failure cannot have changed anything, either, so it is kUnavailable.
  Result<weir::redis::Reply> Read(const weir::redis::Script& script, Keys keys,
                                  const weir::redis::Command& arguments);

  void Abort() noexcept { aborted_ = true; }

 private:
  const std::chrono::milliseconds patience_;
  std::atomic<bool> aborted_{false};
  boost::asio::io_context io_{1};
  std::unique_ptr<weir::redis::Connection> connection_;  // to a single server
  std::unique_ptr<weir::redis::Cluster> cluster_;
};

}  // namespace weir::policy::redis
