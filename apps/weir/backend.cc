#include "backend.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "drivers/mariadb/channel.h"
#include "drivers/postgres/channel.h"
#include "drivers/redis/channel.h"
#include "drivers/redis/masters.h"
#include "drivers/redis/url.h"
#include "policy/cluster_tags.h"
#include "store/guard/herald.h"
#include "store/mariadb/pool.h"
#include "store/postgres/pool.h"
#include "store/redis/redis_store.h"

namespace weir::app {
namespace {

using store::guard::Guard;
using store::guard::Herald;

/// The name under which nodes tell each other what to forget.
constexpr const char* kChannel = "weir_forget";

/// How long what is to be forgotten gathers, after the first of it, where messages are cheap and
/// where they are rows that are read five times a second anyhow.
constexpr std::chrono::milliseconds kAtOnce{10};
constexpr std::chrono::milliseconds kInRows{200};

/// When a backend gives a connection up. Later than the guard gives an answer up: a moment's delay
/// must not cost a connection.
std::chrono::milliseconds PatienceOf(const config::Config& config) {
  return std::max(2 * config.distant.timeout, std::chrono::milliseconds(500));
}

/// What a channel does with what it hears.
Channel::Callbacks Listening(Guard& guard) {
  Channel::Callbacks callbacks;
  callbacks.message = [&guard](std::string_view message) {
    if (const auto hashes = store::guard::ReadHashes(message)) guard.OnForgotten(*hashes);
  };
  callbacks.changed = [&guard](bool up) { guard.SetChannelUp(up); };
  return callbacks;
}

/// Has the guard say on the channel what all nodes should forget.
std::unique_ptr<Herald> Speak(Guard& guard, Channel& channel, std::chrono::milliseconds interval) {
  auto herald = std::make_unique<Herald>(
      interval, [&channel](std::string text) { channel.Publish(std::move(text)); });
  guard.SetPublish(
      [to = herald.get()](std::span<const std::uint64_t> hashes) { to->Tell(hashes); });
  return herald;
}

/// Both SQL stores: a pool for all reactors and a channel in the same database.
class SqlBackend final : public Backend {
 public:
  SqlBackend(std::shared_ptr<store::sql::Pool> pool, std::unique_ptr<Channel> channel,
             std::unique_ptr<Herald> herald)
      : pool_(std::move(pool)), channel_(std::move(channel)), herald_(std::move(herald)) {}

  std::unique_ptr<store::Store> NewStore(boost::asio::io_context& io) override {
    return pool_->MakeStore(io);
  }

 private:
  std::shared_ptr<store::sql::Pool> pool_;
  std::unique_ptr<Channel> channel_;
  std::unique_ptr<Herald> herald_;
};

/// `open_pool` and `open_channel` are those of one kind of database.
template <typename OpenPool, typename OpenChannel>
Result<std::unique_ptr<Backend>> OpenSql(const config::Config& config, Guard& guard,
                                         std::chrono::milliseconds interval, OpenPool open_pool,
                                         OpenChannel open_channel) {
  store::sql::PoolOptions options;
  options.url = config.store;
  if (config.distant.connections != 0) options.connections = config.distant.connections;
  options.timeout = PatienceOf(config);
  options.migrate = config.distant.migrate;
  auto pool = open_pool(std::move(options));
  if (!pool.ok()) return pool.error();
  std::unique_ptr<Channel> channel;
  std::unique_ptr<Herald> herald;
  if (config.distant.deny_cache != 0) {
    channel = open_channel(config.store, kChannel, Listening(guard));
    herald = Speak(guard, *channel, interval);
  }
  return std::unique_ptr<Backend>(
      std::make_unique<SqlBackend>(std::move(*pool), std::move(channel), std::move(herald)));
}

/// One server or a cluster: each reactor has connections of its own.
class RedisBackend final : public Backend {
 public:
  RedisBackend(const config::Config& config, redis::Address address, Guard& guard)
      : config_(config) {
    if (config.distant.deny_cache == 0) return;
    channel_ = redis::OpenChannel(std::move(address), kChannel, Listening(guard));
    herald_ = Speak(guard, *channel_, kAtOnce);
  }

  std::unique_ptr<store::Store> NewStore(boost::asio::io_context& io) override {
    store::redis::Options options;
    options.url = config_.store;
    if (config_.distant.connections != 0) options.connections = config_.distant.connections;
    options.connect_timeout = PatienceOf(config_);
    options.command_timeout = PatienceOf(config_);
    options.masters = masters_;
    // The URL was read before, and nothing else is wrong at this point.
    return std::move(*store::redis::MakeStore(io, std::move(options)));
  }

 private:
  const config::Config& config_;
  const std::shared_ptr<redis::Masters> masters_ =
      std::make_shared<redis::Masters>(store::kMaxParts);
  std::unique_ptr<Channel> channel_;
  std::unique_ptr<Herald> herald_;
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
    return OpenSql(config, guard, kAtOnce, store::postgres::OpenPool, postgres::OpenChannel);
  }
  if (is("redis")) return OpenRedis(config, guard);
  if (is("mysql://") || is("mariadb://")) {
    const auto open_channel = [&config](const std::string& store, const char* name,
                                        Channel::Callbacks callbacks) {
      return mariadb::OpenChannel(store, name, std::move(callbacks), config.distant.migrate);
    };
    return OpenSql(config, guard, kInRows, store::mariadb::OpenPool, open_channel);
  }
  return Error{Code::kUnimplemented,
               "store: " + config::WithoutSecrets(config.store) + " cannot be opened here"};
}

std::vector<std::string> Misfits(const config::Config& config, const policy::PolicySet& policies) {
  if (!config.store.starts_with("redis")) return {};
  const auto address = redis::ParseUrl(config.store);
  if (!address.ok() || !address->cluster || address->tag.empty()) return {};
  return policy::TagConflicts(policies, address->tag);
}

}  // namespace weir::app
