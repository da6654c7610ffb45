#include "library/backend.h"

#include <netdb.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/duration.h"
#include "drivers/redis/channel.h"
#include "drivers/redis/masters.h"
#include "drivers/redis/url.h"
#include "library/sql_backend.h"
#include "policy/spread.h"
#include "store/guard/guarded_store.h"
#include "store/guard/herald.h"
#include "store/redis/key_list.h"
#include "store/redis/redis_store.h"
#include "store/redis/state_watch.h"
#include "telemetry/log.h"

namespace weir::library {
namespace {

using store::guard::Guard;
using store::guard::Herald;

/// The name of the channel on which nodes tell each other what to forget.
constexpr const char* kChannel = "weir_forget";

/// How long keys to forget are collected, after the first one.
constexpr std::chrono::milliseconds kGathering{10};

/// The time limit of one statement for a list of keys, which is for people.
constexpr std::chrono::milliseconds kListPatience{1000};

/// When a backend drops a connection. Later than the guard abandons a call: a short delay must not
/// cost a connection.
std::chrono::milliseconds PatienceOf(const BackendOptions& options) {
  return std::max(2 * options.timeout, std::chrono::milliseconds(500));
}

/// How messages on a channel are handled.
Channel::Callbacks Listening(Guard& guard, const BackendOptions& options) {
  Channel::Callbacks callbacks;
  callbacks.quiet = options.quiet;
  callbacks.message = [&guard](std::string_view message) {
    if (const auto hashes = store::guard::ReadHashes(message)) guard.OnForgotten(*hashes);
  };
  callbacks.changed = [&guard](bool up) { guard.SetChannelUp(up); };
  return callbacks;
}

/// Makes the guard publish on the channel what all nodes should forget.
std::unique_ptr<Herald> Speak(Guard& guard, Channel& channel, std::chrono::milliseconds interval) {
  auto herald = std::make_unique<Herald>(
      interval, [&channel](std::string text) { channel.Publish(std::move(text)); });
  guard.SetPublish(
      [to = herald.get()](std::span<const std::uint64_t> hashes) { to->Tell(hashes); });
  return herald;
}

/// How often a store has lost its data, for callers and in the log.
///
/// Thread-safe.
class LossCount {
 public:
  LostState state() const { return {times_.load(), at_.load()}; }
  void Note(const std::vector<std::string>& hosts) {
    at_ = SystemClock::Get().Now();
    ++times_;
    telemetry::Log(telemetry::Level::kError,
                   "the store has lost data: limits may have started with a full quota again",
                   {{"store", hosts.empty() ? std::string_view() : std::string_view(hosts[0])}});
  }
  static void Fail(const Error& error) {
    if (error.code == Code::kUnauthenticated) return;  // so is everything else, which says so
    telemetry::Log(telemetry::Level::kWarn, "cannot watch whether the store keeps its data",
                   {{"error", std::string_view(error.message)}});
  }

 private:
  std::atomic<std::uint64_t> times_{0};
  std::atomic<Nanos> at_{0};
};

/// SQL stores: a pool for all reactors and a channel in the same database.
class SqlBackend final : public Backend {
 public:
  using ReadPage = std::function<Result<store::KeyPage>(const store::KeyQuery&)>;

  SqlBackend(std::shared_ptr<store::sql::Pool> pool, ReadPage read_page,
             std::vector<std::string> hosts, std::unique_ptr<Channel> channel,
             std::unique_ptr<Herald> herald, std::shared_ptr<const LossCount> losses)
      : pool_(std::move(pool)),
        read_page_(std::move(read_page)),
        hosts_(std::move(hosts)),
        channel_(std::move(channel)),
        herald_(std::move(herald)),
        losses_(std::move(losses)) {}

  std::unique_ptr<store::Store> NewStore(boost::asio::io_context& io) override {
    return pool_->MakeStore(io);
  }
  Result<store::KeyPage> ReadKeys(const store::KeyQuery& query) const override {
    return read_page_(query);
  }
  std::vector<std::string> hosts() const override { return hosts_; }
  std::optional<LostState> lost_state() const override {
    return losses_ ? std::optional(losses_->state()) : std::nullopt;
  }

 private:
  std::shared_ptr<store::sql::Pool> pool_;
  const ReadPage read_page_;
  const std::vector<std::string> hosts_;
  std::unique_ptr<Channel> channel_;
  std::unique_ptr<Herald> herald_;
  const std::shared_ptr<const LossCount> losses_;  // null: not watched
};

/// One server or a cluster: each reactor has its own connections.
class RedisBackend final : public Backend {
 public:
  RedisBackend(BackendOptions options, redis::Address address, Guard& guard)
      : options_(std::move(options)) {
    for (const redis::Endpoint& endpoint : address.endpoints) hosts_.push_back(endpoint.host);
    if (!options_.quiet) Watch();
    if (!options_.refusals) return;
    channel_ = redis::OpenChannel(std::move(address), kChannel, Listening(guard, options_));
    herald_ = Speak(guard, *channel_, kGathering);
  }

  std::unique_ptr<store::Store> NewStore(boost::asio::io_context& io) override {
    store::redis::Options settings = Settings(PatienceOf(options_));
    if (options_.connections != 0) settings.connections = options_.connections;
    settings.masters = masters_;
    settings.spread = options_.spread;
    // The URL was parsed before, and nothing else can fail here.
    return std::move(*store::redis::MakeStore(io, settings));
  }
  Result<store::KeyPage> ReadKeys(const store::KeyQuery& query) const override {
    return store::redis::ReadKeys(Settings(kListPatience), query);
  }
  std::vector<std::string> hosts() const override { return hosts_; }
  std::optional<LostState> lost_state() const override {
    if (!watch_) return std::nullopt;
    return losses_.state();
  }

 private:
  void Watch() {
    auto watch = store::redis::StateWatch::Open(
        {.url = options_.url}, {[this] { losses_.Note(hosts_); }, LossCount::Fail});
    if (watch.ok()) watch_ = std::move(*watch);  // the URL was parsed before
  }
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
  LossCount losses_;
  std::unique_ptr<store::redis::StateWatch> watch_;  // last: its thread writes to the member above
};

}  // namespace

Result<std::unique_ptr<Backend>> OpenSqlBackend(const BackendOptions& options, Guard& guard,
                                                SqlParts parts) {
  store::sql::PoolOptions settings;
  settings.url = options.url;
  if (options.connections != 0) settings.connections = options.connections;
  settings.timeout = PatienceOf(options);
  settings.migrate = options.migrate;
  std::shared_ptr<LossCount> losses;
  if (!options.quiet) {
    losses = std::make_shared<LossCount>();
    settings.watcher = {[losses, hosts = parts.hosts] { losses->Note(hosts); }, LossCount::Fail};
  }
  auto pool = parts.open_pool(std::move(settings));
  if (!pool.ok()) return pool.error();
  std::unique_ptr<Channel> channel;
  std::unique_ptr<Herald> herald;
  if (options.refusals) {
    channel = parts.open_channel(options.url, kChannel, Listening(guard, options));
    herald = Speak(guard, *channel, parts.interval);
  }
  auto read_page = [url = options.url, read = parts.read_keys](const store::KeyQuery& query) {
    return read(url, kListPatience, query);
  };
  return std::unique_ptr<Backend>(
      std::make_unique<SqlBackend>(std::move(*pool), std::move(read_page), std::move(parts.hosts),
                                   std::move(channel), std::move(herald), std::move(losses)));
}

Result<std::unique_ptr<Backend>> OpenRedisBackend(BackendOptions options, Guard& guard) {
  auto address = redis::ParseUrl(options.url);
  if (!address.ok()) return address.error();
  if (2 * address->gather > options.timeout) {
    return Error{Code::kInvalidArgument, "redis: gather=" + FormatDuration(address->gather) +
                                             " is more than half of the store timeout, which is " +
                                             FormatDuration(options.timeout)};
  }
  return std::unique_ptr<Backend>(
      std::make_unique<RedisBackend>(std::move(options), std::move(*address), guard));
}

std::shared_ptr<const KeySpread> SpreadBy(policy::Catalog& catalog, const std::string& url) {
  const auto address = redis::ParseUrl(url);
  if (!address.ok() || !address->cluster || !address->spread || !address->tag.empty()) return {};
  auto spread = std::make_shared<KeySpread>();
  catalog.BeforePublishing(
      [spread](const policy::PolicySet& set) { spread->Publish(policy::SpreadOf(set)); });
  return spread;
}

bool RefusesLogin(const Error& error) {
  return error.code == Code::kUnauthenticated || error.code == Code::kPermissionDenied;
}

namespace {

/// The server's own message says what is not permitted, or that there is no such database.
Error NamedRefusal(Error error) {
  if (error.code == Code::kUnauthenticated)
    error.message = "authentication failed: " + error.message;
  return error;
}

/// True if the name certainly does not exist; a name service that does not answer proves nothing.
bool IsNobodys(const std::string& host) {
  addrinfo* found = nullptr;
  const int result = ::getaddrinfo(host.c_str(), nullptr, nullptr, &found);
  if (found != nullptr) ::freeaddrinfo(found);
  return result == EAI_NONAME;
}

}  // namespace

Status AwaitAnswer(Backend& backend, Guard& guard, std::chrono::milliseconds patience) {
  constexpr std::chrono::seconds kAllHosts{2};  // to be refused for, if there are several
  const auto deadline = std::chrono::steady_clock::now() + patience;
  boost::asio::io_context io(1);
  store::guard::GuardedStore probe(io, guard, backend.NewStore(io));
  Status answer;
  guard.SetAwaited(true);
  auto admitted = std::chrono::steady_clock::now();  // all were refused since then
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
    const auto now = std::chrono::steady_clock::now();
    const bool refused = RefusesLogin(answer.error());
    if (!refused) admitted = now;
    // Of several hosts another one may admit us, now or later.
    if (refused && (hosts.size() <= 1 || now - admitted >= kAllHosts)) {
      answer = NamedRefusal(answer.error());
    } else if (first && !hosts.empty() && std::ranges::all_of(hosts, IsNobodys)) {
      answer = Error{Code::kNotFound, "cannot resolve host " + hosts.front()};
    } else if (now >= deadline) {
      answer = Error{refused ? Code::kUnavailable : answer.error().code,
                     "not responding: " + answer.error().message};
    } else {
      io.restart();
      io.run_for(std::chrono::milliseconds(20));
      continue;
    }
    break;
  }
  guard.SetAwaited(false);
  probe.Close();
  io.restart();
  io.poll();
  return answer;
}

}  // namespace weir::library
