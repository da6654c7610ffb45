#include "notify/redis/gateway.h"

#include <utility>

#include "drivers/redis/url.h"
#include "notify/redis/core.h"

namespace weir::notify::redis {

Result<std::unique_ptr<RedisGateway>> RedisGateway::Open(Options options, Gateway& fallback,
                                                         LimitStore& store, Publisher& publisher,
                                                         const Clock& clock) {
  Result<weir::redis::Address> address = weir::redis::ParseUrl(options.url);
  if (!address.ok()) return address.error();
  if (address->cluster) {
    return Error{Code::kInvalidArgument, "the cache must be one Redis server, not a cluster"};
  }
  weir::redis::ConnectionOptions connection = weir::redis::ConnectionOptions::Of(*address);
  connection.command_timeout = options.command_timeout;
  connection.connect_timeout = options.command_timeout;
  connection.max_in_flight = 4 * options.max_waiting;
  auto core = std::make_shared<Core>(std::move(options), std::move(connection), fallback, store,
                                     publisher, clock);
  core->Open();
  return std::unique_ptr<RedisGateway>(new RedisGateway(std::move(core)));
}

RedisGateway::RedisGateway(std::shared_ptr<Core> core) : core_(std::move(core)) {}

RedisGateway::~RedisGateway() { core_->Close(); }

void RedisGateway::Configure(UserLimit limit, Done<UserLimit> done) {
  core_->Configure(std::move(limit), std::move(done));
}

void RedisGateway::Adjust(UserLimit limit, Done<UserLimit> done) {
  core_->Adjust(std::move(limit), std::move(done));
}

void RedisGateway::Ensure(UserLimit limit, Done<bool> done) {
  core_->Ensure(std::move(limit), std::move(done));
}

void RedisGateway::Remove(std::string user_id, Done<bool> done) {
  core_->Remove(std::move(user_id), std::move(done));
}

void RedisGateway::Send(SendRequest request, Done<SendAnswer> done) {
  core_->Post([core = core_.get(), request = std::move(request), done = std::move(done)]() mutable {
    core->Send(std::move(request), std::move(done));
  });
}

void RedisGateway::Find(std::string user_id, Done<std::optional<UserLimit>> done) {
  core_->Find(std::move(user_id), std::move(done));
}

std::size_t RedisGateway::waiting() const { return core_->waiting(); }

bool RedisGateway::redis_up() const noexcept { return core_->up(); }

}  // namespace weir::notify::redis
