#include "backend.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "drivers/mariadb/channel.h"
#include "drivers/postgres/channel.h"
#include "drivers/redis/channel.h"
#include "drivers/redis/url.h"
#include "store/mariadb/pool.h"
#include "store/postgres/pool.h"
#include "store/redis/redis_store.h"

namespace weir::app {
namespace {

using store::guard::Guard;

/// The name under which nodes tell each other what to forget.
constexpr const char* kChannel = "weir_forget";

/// When a backend gives a connection up. Later than the guard gives an answer up: a moment's delay
/// must not cost a connection.
std::chrono::milliseconds PatienceOf(const config::Config& config) {
  return std::max(2 * config.distant.timeout, std::chrono::milliseconds(500));
}

/// Hashes go out in messages of bounded size.
template <typename Send>
Guard::Publish InMessages(Send send) {
  return [send](std::span<const std::uint64_t> hashes) {
    for (std::size_t at = 0; at < hashes.size(); at += store::guard::kMaxHashes) {
      const std::size_t count = std::min(store::guard::kMaxHashes, hashes.size() - at);
      send(store::guard::WriteHashes(hashes.subspan(at, count)));
    }
  };
}

/// What a channel of either kind does with what it hears.
template <typename Channel>
typename Channel::Callbacks Listening(Guard& guard) {
  typename Channel::Callbacks callbacks;
  callbacks.message = [&guard](std::string_view message) {
    if (const auto hashes = store::guard::ReadHashes(message)) guard.OnForgotten(*hashes);
  };
  callbacks.changed = [&guard](bool up) { guard.SetChannelUp(up); };
  return callbacks;
}

/// Both SQL stores: a pool for all reactors and a channel in the same database.
template <typename Pool, typename Channel>
class SqlBackend final : public Backend {
 public:
  SqlBackend(const config::Config& config, std::shared_ptr<Pool> pool, Guard& guard)
      : pool_(std::move(pool)) {
    if (config.distant.deny_cache == 0) return;
    channel_ = std::make_unique<Channel>(config.store, kChannel, Listening<Channel>(guard));
    guard.SetPublish(InMessages(
        [channel = channel_.get()](std::string text) { channel->Publish(std::move(text)); }));
  }

  std::unique_ptr<store::Store> NewStore(boost::asio::io_context& io) override {
    return pool_->MakeStore(io);
  }

 private:
  std::shared_ptr<Pool> pool_;
  std::unique_ptr<Channel> channel_;
};

template <typename Pool, typename Channel, typename Options>
Result<std::unique_ptr<Backend>> OpenSql(const config::Config& config, Guard& guard) {
  Options options;
  options.url = config.store;
  if (config.distant.connections != 0) options.connections = config.distant.connections;
  options.timeout = PatienceOf(config);
  options.migrate = config.distant.migrate;
  auto pool = Pool::Open(std::move(options));
  if (!pool.ok()) return pool.error();
  return std::unique_ptr<Backend>(
      std::make_unique<SqlBackend<Pool, Channel>>(config, std::move(*pool), guard));
}

/// One server or a cluster: each reactor has connections of its own.
class RedisBackend final : public Backend {
 public:
  RedisBackend(const config::Config& config, redis::Address address, Guard& guard)
      : config_(config) {
    if (config.distant.deny_cache == 0) return;
    channel_ = std::make_unique<redis::Channel>(std::move(address), kChannel,
                                                Listening<redis::Channel>(guard));
    guard.SetPublish(InMessages(
        [channel = channel_.get()](std::string text) { channel->Publish(std::move(text)); }));
  }

  std::unique_ptr<store::Store> NewStore(boost::asio::io_context& io) override {
    store::redis::Options options;
    options.url = config_.store;
    if (config_.distant.connections != 0) options.connections = config_.distant.connections;
    options.connect_timeout = PatienceOf(config_);
    options.command_timeout = PatienceOf(config_);
    // The URL was read before, and nothing else is wrong at this point.
    return std::move(*store::redis::MakeStore(io, std::move(options)));
  }

 private:
  const config::Config& config_;
  std::unique_ptr<redis::Channel> channel_;
};

Result<std::unique_ptr<Backend>> OpenRedis(const config::Config& config, Guard& guard) {
  auto address = redis::ParseUrl(config.store);
  if (!address.ok()) return address.error();
  return std::unique_ptr<Backend>(
      std::make_unique<RedisBackend>(config, std::move(*address), guard));
}

}  // namespace

Result<std::unique_ptr<Backend>> OpenBackend(const config::Config& config, Guard& guard) {
  const std::string_view url = config.store;
  const auto is = [url](std::string_view scheme) { return url.starts_with(scheme); };
  if (is("postgres://") || is("postgresql://")) {
    return OpenSql<store::postgres::Pool, postgres::Channel, store::postgres::Options>(config,
                                                                                       guard);
  }
  if (is("redis")) return OpenRedis(config, guard);
  if (is("mysql://") || is("mariadb://")) {
    return OpenSql<store::mariadb::Pool, mariadb::Channel, store::mariadb::Options>(config, guard);
  }
  return Error{Code::kUnimplemented,
               "store: " + config::WithoutSecrets(config.store) + " cannot be opened here"};
}

}  // namespace weir::app
