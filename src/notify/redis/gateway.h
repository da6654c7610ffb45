#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "notify/gateway.h"
#include "notify/limit_store.h"
#include "notify/publisher.h"
#include "weir/clock.h"
#include "weir/result.h"

namespace weir::notify::redis {

struct Options {
  std::string url = {};  ///< redis://… of one server
  std::size_t max_waiting = 20'000;
  /// Longer than this without an answer, and Redis counts as down.
  std::chrono::milliseconds command_timeout{300};
  std::chrono::milliseconds probe_interval{200};  ///< while it is down
  std::chrono::milliseconds sync_interval{3};     ///< between two calls to the table
};

/// Decides in Redis and keeps the table of limits informed: a send takes its place in the user's
/// hash before it is published, and never gives it back. Without Redis everything goes to the
/// gateway behind, and back again when Redis is.
///
/// One gateway process never lets a user exceed the cap, also not while Redis goes and comes:
/// before it changes sides it waits for what is under way on the one it leaves, and brings the
/// counts over. docs/design/notify.md says what several processes can do together at most.
class RedisGateway final : public Gateway {
 public:
  /// `fallback` and `store` are the gateway and the table behind (they may be one object). All must
  /// outlive this. An error if the URL is none.
  static Result<std::unique_ptr<RedisGateway>> Open(Options options, Gateway& fallback,
                                                    LimitStore& store, Publisher& publisher,
                                                    const Clock& clock);
  ~RedisGateway() override;

  void Configure(UserLimit limit, Done<UserLimit> done) override;
  void Adjust(UserLimit limit, Done<UserLimit> done) override;
  void Ensure(UserLimit limit, Done<bool> done) override;
  void Remove(std::string user_id, Done<bool> done) override;
  void Send(SendRequest request, Done<SendAnswer> done) override;
  void Find(std::string user_id, Done<std::optional<UserLimit>> done) override;
  std::size_t waiting() const override;

  /// False while requests go to the gateway behind.
  bool redis_up() const noexcept;

 private:
  class Core;
  explicit RedisGateway(std::shared_ptr<Core> core);
  std::shared_ptr<Core> core_;
};

}  // namespace weir::notify::redis
