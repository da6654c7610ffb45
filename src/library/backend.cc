#include "library/backend.h"

#include <netdb.h>

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "drivers/mysql/channel.h"
#include "drivers/mysql/url.h"
#include "drivers/postgres/channel.h"
#include "drivers/postgres/url.h"
#include "drivers/redis/channel.h"
#include "drivers/redis/masters.h"
#include "drivers/redis/url.h"
#include "policy/spread.h"
#include "store/guard/guarded_store.h"
#include "store/guard/herald.h"
#include "store/mysql/key_list.h"
#include "store/mysql/pool.h"
#include "store/postgres/key_list.h"
#include "store/postgres/pool.h"
#include "store/redis/key_list.h"
#include "store/redis/redis_store.h"

namespace weir::library {
namespace {

using store::guard::Guard;
using store::guard::Herald;

/// The name under which nodes tell each other what to forget.
constexpr const char* kChannel = "weir_forget";

/// How long what is to be forgotten gathers, after the first of it, where messages are cheap and
/// where they are rows that are read five times a second anyhow.
constexpr std::chrono::milliseconds kAtOnce{10};
constexpr std::chrono::milliseconds kInRows{200};

/// What a list of keys is given for one statement: it is for people.
constexpr std::chrono::milliseconds kListPatience{1000};

/// When a backend gives a connection up. Later than the guard gives an answer up: a moment's delay
/// must not cost a connection.
std::chrono::milliseconds PatienceOf(const BackendOptions& options) {
  return std::max(2 * options.timeout, std::chrono::milliseconds(500));
}

/// What a channel does with what it hears.
Channel::Callbacks Listening(Guard& guard, const BackendOptions& options) {
  Channel::Callbacks callbacks;
  callbacks.quiet = options.quiet;
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
  using ReadPage = std::function<Result<store::KeyPage>(const store::KeyQuery&)>;

  SqlBackend(std::shared_ptr<store::sql::Pool> pool, ReadPage read_page,
             std::vector<std::string> hosts, std::unique_ptr<Channel> channel,
             std::unique_ptr<Herald> herald)
      : pool_(std::move(pool)),
        read_page_(std::move(read_page)),
        hosts_(std::move(hosts)),
        channel_(std::move(channel)),
        herald_(std::move(herald)) {}

  std::unique_ptr<store::Store> NewStore(boost::asio::io_context& io) override {
    return pool_->MakeStore(io);
  }
  Result<store::KeyPage> ReadKeys(const store::KeyQuery& query) const override {
    return read_page_(query);
  }
  std::vector<std::string> hosts() const override { return hosts_; }

 private:
  std::shared_ptr<store::sql::Pool> pool_;
  const ReadPage read_page_;
  const std::vector<std::string> hosts_;
  std::unique_ptr<Channel> channel_;
  std::unique_ptr<Herald> herald_;
};

/// `open_pool`, `read_keys` and `open_channel` are those of one kind of database.
template <typename OpenPool, typename ReadKeys, typename OpenChannel>
Result<std::unique_ptr<Backend>> OpenSql(const BackendOptions& options, Guard& guard,
                                         std::chrono::milliseconds interval,
                                         std::vector<std::string> hosts, OpenPool open_pool,
                                         ReadKeys read_keys, OpenChannel open_channel) {
  store::sql::PoolOptions settings;
  settings.url = options.url;
  if (options.connections != 0) settings.connections = options.connections;
  settings.timeout = PatienceOf(options);
  settings.migrate = options.migrate;
  auto pool = open_pool(std::move(settings));
  if (!pool.ok()) return pool.error();
  std::unique_ptr<Channel> channel;
  std::unique_ptr<Herald> herald;
  if (options.refusals) {
    channel = open_channel(options.url, kChannel, Listening(guard, options));
    herald = Speak(guard, *channel, interval);
  }
  auto read_page = [url = options.url, read_keys](const store::KeyQuery& query) {
    return read_keys(url, kListPatience, query);
  };
  return std::unique_ptr<Backend>(
      std::make_unique<SqlBackend>(std::move(*pool), std::move(read_page), std::move(hosts),
                                   std::move(channel), std::move(herald)));
}

/// One server or a cluster: each reactor has connections of its own.
class RedisBackend final : public Backend {
 public:
  RedisBackend(BackendOptions options, redis::Address address, Guard& guard)
      : options_(std::move(options)) {
    for (const redis::Endpoint& endpoint : address.endpoints) hosts_.push_back(endpoint.host);
    if (!options_.refusals) return;
    channel_ = redis::OpenChannel(std::move(address), kChannel, Listening(guard, options_));
    herald_ = Speak(guard, *channel_, kAtOnce);
  }

  std::unique_ptr<store::Store> NewStore(boost::asio::io_context& io) override {
    store::redis::Options settings = Settings(PatienceOf(options_));
    if (options_.connections != 0) settings.connections = options_.connections;
    settings.masters = masters_;
    settings.spread = options_.spread;
    // The URL was read before, and nothing else is wrong at this point.
    return std::move(*store::redis::MakeStore(io, settings));
  }
  Result<store::KeyPage> ReadKeys(const store::KeyQuery& query) const override {
    return store::redis::ReadKeys(Settings(kListPatience), query);
  }
  std::vector<std::string> hosts() const override { return hosts_; }

 private:
  store::redis::Options Settings(std::chrono::milliseconds patience) const {
    store::redis::Options settings;
    settings.url = options_.url;
    settings.connect_timeout = patience;
    settings.command_timeout = patience;
    return settings;
  }

  const BackendOptions options_;
  const std::shared_ptr<redis::Masters> masters_ =
      std::make_shared<redis::Masters>(store::kMaxParts);
  std::vector<std::string> hosts_;
  std::unique_ptr<Channel> channel_;
  std::unique_ptr<Herald> herald_;
};

Result<std::unique_ptr<Backend>> OpenRedis(BackendOptions options, Guard& guard) {
  auto address = redis::ParseUrl(options.url);
  if (!address.ok()) return address.error();
  return std::unique_ptr<Backend>(
      std::make_unique<RedisBackend>(std::move(options), std::move(*address), guard));
}

}  // namespace

std::shared_ptr<const KeySpread> SpreadBy(policy::Catalog& catalog, const std::string& url) {
  const auto address = redis::ParseUrl(url);
  if (!address.ok() || !address->cluster || !address->spread || !address->tag.empty()) return {};
  auto spread = std::make_shared<KeySpread>();
  catalog.BeforePublishing(
      [spread](const policy::PolicySet& set) { spread->Publish(policy::SpreadOf(set)); });
  return spread;
}

Result<std::unique_ptr<Backend>> OpenBackend(BackendOptions options, Guard& guard) {
  const std::string_view url = options.url;
  const std::string_view scheme = url.substr(0, std::min(url.find("://"), url.size()));
  const auto is = [scheme](std::string_view name) { return scheme == name; };
  if (is("postgres") || is("postgresql")) {
    const auto target = postgres::Target::Parse(options.url);
    if (!target.ok()) return target.error();
    return OpenSql(options, guard, kAtOnce, target->names(), store::postgres::OpenPool,
                   store::postgres::ReadKeys, postgres::OpenChannel);
  }
  if (is("redis") || is("rediss") || is("redis+cluster") || is("rediss+cluster")) {
    return OpenRedis(std::move(options), guard);
  }
  if (is("mysql") || is("mariadb")) {
    const auto open_channel = [&options](const std::string& store, const char* name,
                                         Channel::Callbacks callbacks) {
      return mysql::OpenChannel(store, name, std::move(callbacks), options.migrate);
    };
    const auto target = mysql::ParseUrl(url);
    if (!target.ok()) return target.error();
    std::vector<std::string> hosts;
    for (const mysql::Endpoint& endpoint : target->endpoints) hosts.push_back(endpoint.host);
    return OpenSql(options, guard, kInRows, std::move(hosts), store::mysql::OpenPool,
                   store::mysql::ReadKeys, open_channel);
  }
  // What stands behind the scheme may be a secret.
  const std::string given =
      scheme.size() == url.size() ? "" : " not " + std::string(scheme) + "://";
  return Error{Code::kInvalidArgument,
               "the store's URL must begin with redis://, rediss://, redis+cluster://, "
               "rediss+cluster://, postgres:// or mysql://" +
                   (given.empty() ? given : "," + given)};
}

namespace {

bool LetsUsIn(const Error& error) {
  return error.code != Code::kUnauthenticated && error.code != Code::kPermissionDenied;
}

/// True if the name is certainly nobody's; a name service that does not answer leaves it open.
bool IsNobodys(const std::string& host) {
  addrinfo* found = nullptr;
  const int result = ::getaddrinfo(host.c_str(), nullptr, nullptr, &found);
  if (found != nullptr) ::freeaddrinfo(found);
  return result == EAI_NONAME;
}

}  // namespace

Status AwaitAnswer(Backend& backend, Guard& guard, std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  boost::asio::io_context io(1);
  store::guard::GuardedStore probe(io, guard, backend.NewStore(io));
  Status answer;
  for (bool first = true;; first = false) {
    bool told = false;
    probe.Probe(0, [&](const Status& status) {
      answer = status;
      told = true;
    });
    while (!told) {
      io.restart();
      io.run_one();
    }
    if (answer.ok()) break;
    const std::vector<std::string> hosts = backend.hosts();
    if (!LetsUsIn(answer.error())) {
      answer = Error{answer.error().code, "authentication failed: " + answer.error().message};
    } else if (first && !hosts.empty() && std::ranges::all_of(hosts, IsNobodys)) {
      answer = Error{Code::kNotFound, "cannot resolve host " + hosts.front()};
    } else if (std::chrono::steady_clock::now() >= deadline) {
      answer = Error{answer.error().code, "does not answer: " + answer.error().message};
    } else {
      io.restart();
      io.run_for(std::chrono::milliseconds(20));
      continue;
    }
    break;
  }
  probe.Close();
  io.restart();
  io.poll();
  return answer;
}

}  // namespace weir::library
