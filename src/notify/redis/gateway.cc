#include "notify/redis/gateway.h"

#include <algorithm>
#include <future>
#include <utility>

#include "base/number.h"
#include "drivers/redis/url.h"
#include "telemetry/log.h"

namespace weir::notify::redis {
namespace {

using telemetry::Level;
using telemetry::Log;
using weir::redis::Command;

constexpr std::chrono::seconds kDrainTimeout{3};
constexpr std::chrono::milliseconds kSyncAgain{200};
constexpr std::size_t kForgetChunk = 500;
constexpr std::string_view kDownLine = "REDIS DOWN — Falling back to Postgres";

// "run_id:<40 hex digits>" of INFO server.
std::string RunOf(const std::string& info) {
  const std::size_t at = info.find("run_id:");
  if (at == std::string::npos) return {};
  const std::size_t end = info.find_first_of("\r\n", at);
  return info.substr(at + 7, end - at - 7);
}

}  // namespace

RedisGateway::RedisGateway(Options options, weir::redis::ConnectionOptions connection,
                           Gateway& fallback, LimitStore& store, Publisher& publisher,
                           const Clock& clock)
    : options_(std::move(options)),
      fallback_(fallback),
      store_(store),
      publisher_(publisher),
      clock_(clock),
      connection_(std::make_unique<weir::redis::Connection>(thread_.io(), std::move(connection))),
      probe_timer_(thread_.io()),
      sync_timer_(thread_.io()),
      sync_([this](std::vector<CountDelta> deltas, std::vector<KeyedSend> keyed,
                   std::vector<Accepted> accepted) {
        AddToStore(std::move(deltas), std::move(keyed), std::move(accepted));
      }) {}

Result<std::shared_ptr<RedisGateway>> RedisGateway::Open(Options options, Gateway& fallback,
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
  auto opened = std::make_shared<RedisGateway>(std::move(options), std::move(connection), fallback,
                                               store, publisher, clock);
  opened->Post([gateway = opened.get()] { gateway->Probe(); });
  opened->thread_.Start();
  // Callbacks of other components may still hold it when its owner releases it.
  RedisGateway* const gateway = opened.get();
  return std::shared_ptr<RedisGateway>(
      gateway, [opened = std::move(opened)](RedisGateway*) { opened->Close(); });
}

void RedisGateway::Close() {
  auto drained = std::make_shared<std::promise<void>>();
  std::future<void> done = drained->get_future();
  Post([this, drained] {
    drained_ = [drained] { drained->set_value(); };
    sync_.Flush();
    if (sync_.idle()) std::exchange(drained_, nullptr)();
  });
  done.wait_for(kDrainTimeout);
  thread_.Finish([this] {
    closed_ = true;
    probe_timer_.cancel();
    sync_timer_.cancel();
    const Error closing{Code::kUnavailable, "the gateway is closing"};
    FailLoads(closing);
    for (const RequestPtr& request : std::exchange(held_, {})) Answer(request, closing);
    connection_.reset();
  });
}

void RedisGateway::GoDown(const Error& why) {
  if (state_ != State::kUp || closed_) return;
  Log(Level::kWarn, kDownLine, {{"error", std::string_view(why.message)}});
  state_ = State::kFalling;
  up_.store(false, std::memory_order_release);
  HoldLoads();
  sync_.Flush();
  MaybeFallen();
}

void RedisGateway::MaybeFallen() {
  if (state_ != State::kFalling || in_redis_ > 0 || !sync_.idle()) return;
  state_ = State::kDown;
  Release();
  Probe();
}

void RedisGateway::Release() {
  for (const RequestPtr& request : std::exchange(held_, {})) Submit(request);
}

void RedisGateway::Probe() {
  if (closed_) return;
  connection_->Send(Command{"INFO", "server"},
                    [this](const weir::redis::Answer& answer) { Probed(answer); });
}

void RedisGateway::Probed(const weir::redis::Answer& answer) {
  if (closed_) return;
  run_ = answer.status.ok() ? RunOf(answer.reply.text) : std::string();
  if (run_.empty()) return FailRecovery();
  state_ = State::kRecovering;
  MaybeRecovered();
}

void RedisGateway::FailRecovery() {
  if (state_ == State::kRecovering) {
    Log(Level::kWarn, kDownLine);
    state_ = State::kDown;
    Release();
  }
  probe_timer_.expires_after(options_.probe_interval);
  probe_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) Probe();
  });
}

void RedisGateway::MaybeRecovered() {
  if (state_ != State::kRecovering || run_.empty() || in_fallback_ > 0 || forgetting_) return;
  if (!dirty_.empty()) return ForgetDirty();
  // For keys that the fallback stored in the meantime, and those that a new Redis has lost.
  keys_elsewhere_until_ = Now() + kKeyLifetime;
  Log(Level::kInfo, "Redis is back; using it again");
  state_ = State::kUp;
  up_.store(true, std::memory_order_release);
  Release();
}

void RedisGateway::ForgetDirty() {
  forgetting_ = true;
  struct Progress {
    std::unordered_set<std::string> users;
    std::size_t left = 1;
    bool ok = true;
  };
  auto progress = std::make_shared<Progress>();
  progress->users.swap(dirty_);
  const auto take = [this, progress](bool ok) {
    progress->ok &= ok;
    if (--progress->left > 0 || closed_) return;
    forgetting_ = false;
    if (progress->ok) return MaybeRecovered();
    dirty_.merge(progress->users);
    FailRecovery();
  };
  Command command{"DEL"};
  const auto send = [&] {
    ++progress->left;
    connection_->Send(std::exchange(command, Command{"DEL"}),
                      [take](const weir::redis::Answer& answer) { take(answer.status.ok()); });
  };
  for (const std::string& user : progress->users) {
    command.Add(CacheKey(user));
    if (command.count() > kForgetChunk) send();
  }
  if (command.count() > 1) send();
  take(true);
}

void RedisGateway::ScheduleSync() {
  if (sync_scheduled_ || sync_.calling()) return;
  sync_scheduled_ = true;
  sync_timer_.expires_after(sync_failing_ ? kSyncAgain : options_.sync_interval);
  sync_timer_.async_wait([this](const boost::system::error_code& error) {
    sync_scheduled_ = false;
    if (!error) sync_.Flush();
  });
}

void RedisGateway::AddToStore(std::vector<CountDelta> deltas, std::vector<KeyedSend> keyed,
                              std::vector<Accepted> accepted) {
  store_.Add(
      std::move(deltas), std::move(keyed), std::move(accepted),
      [weak = weak_from_this()](Status status) {
        const auto self = weak.lock();
        if (!self) return;
        self->Post([core = self.get(), status = std::move(status)] { core->Synced(status); });
      });
}

void RedisGateway::Synced(const Status& status) {
  if (closed_) return;
  sync_.Synced(status.ok());
  if (!status.ok() && !sync_failing_) {
    Log(Level::kWarn, "cannot sync counts to PostgreSQL; will retry",
        {{"error", std::string_view(status.error().message)}});
  }
  sync_failing_ = !status.ok();
  if (sync_.idle()) {
    if (drained_) std::exchange(drained_, nullptr)();
  } else {
    ScheduleSync();
  }
  if (sync_failing_ && state_ == State::kFalling) {
    // Redis is down, and the table cannot be used before it includes the counts of Redis.
    for (const RequestPtr& request : std::exchange(held_, {})) Answer(request, status.error());
  }
  MaybeFallen();
  StartLoads();
}

Gateway::Done<UserLimit> RedisGateway::ThenForget(const UserLimit& limit, Done<UserLimit> done) {
  std::string user(SplitRowName(limit.user_id).user_id);
  return [weak = weak_from_this(), user = std::move(user),
          done = std::move(done)](Result<UserLimit> saved) {
    const auto self = weak.lock();
    if (!self || !saved.ok()) return done(std::move(saved));
    self->Forget(user, [done, saved = std::move(saved)] { done(saved); });
  };
}

void RedisGateway::Configure(UserLimit limit, Done<UserLimit> done) {
  auto saved = ThenForget(limit, std::move(done));
  fallback_.Configure(std::move(limit), std::move(saved));
}

void RedisGateway::Adjust(UserLimit limit, Done<UserLimit> done) {
  std::string user_id = limit.user_id;
  Find(std::move(user_id), [weak = weak_from_this(), limit = std::move(limit),
                            done = std::move(done)](Result<std::optional<UserLimit>> row) mutable {
    if (!row.ok()) return done(row.error());
    const bool same = row->has_value() && (*row)->rate_limit == limit.rate_limit &&
                      (*row)->time_window == limit.time_window;
    if (same) return done(std::move(**row));
    const auto self = weak.lock();
    if (!self) return done(Error{Code::kUnavailable, "the gateway is closed"});
    auto saved = self->ThenForget(limit, std::move(done));
    self->fallback_.Adjust(std::move(limit), std::move(saved));
  });
}

void RedisGateway::Remove(std::string user_id, Done<bool> done) {
  std::string user(SplitRowName(user_id).user_id);
  fallback_.Remove(std::move(user_id), [weak = weak_from_this(), user = std::move(user),
                                        done = std::move(done)](Result<bool> removed) {
    const auto self = weak.lock();
    if (!self || !removed.ok()) return done(std::move(removed));
    self->Forget(user, [done, removed = std::move(removed)] { done(removed); });
  });
}

void RedisGateway::Forget(const std::string& user, std::function<void()> done) {
  Post([this, user, done = std::move(done)] {
    if (state_ != State::kUp || closed_) {
      // The hash is deleted before Redis decides again.
      dirty_.insert(user);
      Log(Level::kWarn, kDownLine, {{"while", std::string_view("a config was saved")}});
      return done();
    }
    connection_->Send(Command{"DEL", CacheKey(user)},
                      [this, user, done](const weir::redis::Answer& answer) {
                        if (!answer.status.ok()) {
                          dirty_.insert(user);
                          GoDown(answer.status.error());
                        }
                        done();
                      });
  });
}

void RedisGateway::Find(std::string user_id, Done<std::optional<UserLimit>> done) {
  std::string user = user_id;
  fallback_.Find(
      std::move(user_id), [weak = weak_from_this(), user = std::move(user),
                           done = std::move(done)](Result<std::optional<UserLimit>> row) {
        const auto self = weak.lock();
        if (!self || !row.ok() || !row->has_value()) return done(std::move(row));
        self->Post([core = self.get(), user, done, row = std::move(row)]() mutable {
          if (core->state_ != State::kUp || core->closed_) return done(std::move(row));
          core->connection_->Send(
              Command{"HMGET", CacheKey(user), "currentCount", "windowStart"},
              [done, row = std::move(row)](const weir::redis::Answer& answer) mutable {
                // The table may not have caught up; a cache that is down or has another window says
                // nothing.
                if (answer.status.ok() && answer.reply.is_array(2) &&
                    answer.reply.elements[1].text == std::to_string((*row)->last_refresh_time)) {
                  const std::int64_t count =
                      ParseNumber<std::int64_t>(answer.reply.elements[0].text).value_or(0);
                  (*row)->current_count = std::max((*row)->current_count, count);
                }
                done(std::move(row));
              });
        });
      });
}

}  // namespace weir::notify::redis
