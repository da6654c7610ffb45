#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "store/store.h"
#include "weir/clock.h"
#include "weir/result.h"

namespace boost::asio {
class io_context;
}  // namespace boost::asio

namespace weir {
class KeySpread;
}  // namespace weir

namespace weir::redis {
class Masters;
}  // namespace weir::redis

namespace weir::store::redis {

struct Options {
  /// redis://…, rediss://…, redis+cluster://…: see drivers/redis/url.h.
  std::string url = {};
  /// Of this reactor; in a cluster, to each of its masters.
  std::size_t connections = 1;
  std::chrono::milliseconds connect_timeout{2000};
  /// From a call being sent to its answer.
  std::chrono::milliseconds command_timeout{1000};
  /// The prefix of all keys in Redis.
  std::string prefix = "weir:";
  /// Cluster only: which keys share a slot. Empty: those of one domain. Otherwise the name of an
  /// entry such as "user": those of one domain and one value of that entry. `?tag=` in the URL does
  /// the same. See docs/design/stores-redis.md.
  std::string tag_entry = {};
  /// Cluster only, without tag_entry: where policies' keys live, instead of by their domain. Null:
  /// by their domain.
  std::shared_ptr<const KeySpread> spread = {};
  /// How long a check may wait for others that then share one call with it, if there were checks
  /// recently; it saves the server wake-ups. 0: not at all. `?gather=` in the URL does the same.
  std::chrono::nanoseconds gather{0};
  /// Applications that may wait or be in flight; more are refused with kResourceExhausted.
  std::size_t max_pending = 100'000;
  /// Cluster only: names the store's parts, for all reactors. Null: for this one only.
  std::shared_ptr<weir::redis::Masters> masters = {};
  /// For tests: used instead of the server's clock, and keys do not expire. Null: the server's.
  const Clock* clock = nullptr;
};

/// A store on a Redis server or a Redis Cluster. Connects on the first Apply; applications that
/// cannot be decided say so in their status, with kUnavailable if trying again may help.
///
/// The store belongs to the thread that runs `io`. Destroying it completes what is pending, with an
/// error.
Result<std::unique_ptr<Store>> MakeStore(boost::asio::io_context& io, const Options& options);

}  // namespace weir::store::redis
