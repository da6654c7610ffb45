#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "drivers/io_thread.h"
#include "drivers/redis/connection.h"
#include "notify/event.h"
#include "notify/gateway.h"
#include "notify/limit_store.h"
#include "notify/publisher.h"
#include "notify/redis/count_sync.h"
#include "notify/redis/scripts.h"
#include "weir/clock.h"
#include "weir/result.h"

namespace weir::notify::redis {

struct Options {
  std::string url = {};  ///< redis://… of one server
  std::size_t max_waiting = 20'000;
  /// If Redis does not answer within this time, it counts as down.
  std::chrono::milliseconds command_timeout{300};
  std::chrono::milliseconds probe_interval{200};  ///< while it is down
  std::chrono::milliseconds sync_interval{3};     ///< between two calls to the table
  /// Sends that may be in memory alone while the table cannot be written; then they are refused.
  std::size_t max_unsynced = 200'000;
};

/// Decides in Redis and keeps the table of limits up to date: a send takes its place in the user's
/// hash before it is published, and never returns it. While Redis is down, everything goes to the
/// fallback gateway.
///
/// One gateway process never lets a user exceed the cap, even while Redis goes down and comes back:
/// before it switches sides it waits for the requests on the side it leaves, and transfers the
/// counts. docs/design/notify.md gives the bound for several processes together.
///
/// In three files: gateway.cc, the state of Redis; sending.cc, the path of a request;
/// loading.cc, users whose hash is missing. Its state belongs to its own thread.
class RedisGateway final : public Gateway, public std::enable_shared_from_this<RedisGateway> {
 public:
  /// `fallback` and `store` are the gateway and the table behind (they may be one object). All must
  /// outlive this. Fails if the URL is invalid. Releasing the pointer closes it: the last counts
  /// are written to the table if that can be done soon, and the thread ends.
  static Result<std::shared_ptr<RedisGateway>> Open(Options options, Gateway& fallback,
                                                    LimitStore& store, Publisher& publisher,
                                                    const Clock& clock);
  /// For Open.
  RedisGateway(Options options, weir::redis::ConnectionOptions connection, Gateway& fallback,
               LimitStore& store, Publisher& publisher, const Clock& clock);

  void Configure(UserLimit limit, Done<UserLimit> done) override;
  /// If the numbers are already in force, the hash is left alone: it may be ahead of the table.
  void Adjust(UserLimit limit, Done<UserLimit> done) override;
  /// A user without a row has no hash either, so Redis need not change.
  void Ensure(UserLimit limit, Done<bool> done) override {
    fallback_.Ensure(std::move(limit), std::move(done));
  }
  void Remove(std::string user_id, Done<bool> done) override;
  void Send(SendRequest request, Done<SendAnswer> done) override;
  void Find(std::string user_id, Done<std::optional<UserLimit>> done) override;
  std::size_t waiting() const override { return waiting_.load(std::memory_order_relaxed); }

  /// False while requests go to the fallback.
  bool redis_up() const noexcept { return up_.load(std::memory_order_acquire); }

 private:
  using Timer = IoThread::Timer;
  /// kUp: requests go to Redis. kFalling: they wait until the counts in Redis are in the
  /// table. kDown: they go to the fallback. kRecovering: they wait until the fallback has answered
  /// all of its requests, and the hashes of the users it counted are deleted in Redis.
  enum class State { kUp, kFalling, kDown, kRecovering };

  struct Request {
    SendRequest send;
    Done<SendAnswer> done;
    Event event = {};
    Micros accepted_at = 0;
    std::string send_key = {};  // empty: no idempotency key
    std::int64_t digest = 0;
    bool key_checked = false;  // the table does not know the key
    int loads = 0;
    std::vector<std::pair<std::int64_t, Done<SendAnswer>>> same_key = {};  // digest, who
  };
  using RequestPtr = std::shared_ptr<Request>;

  struct Load {
    std::vector<RequestPtr> requests;
    UserLimit filled = {};
  };

  // gateway.cc
  void Close();
  /// Any thread; tasks are dropped once closed.
  void Post(std::function<void()> task) { thread_.Post(std::move(task)); }
  /// A callback for the saved row, which calls `done` once the user's hash is deleted in Redis.
  Done<UserLimit> ThenForget(const UserLimit& limit, Done<UserLimit> done);
  /// Deletes the hash of a changed user in Redis, now or before Redis decides again. Any thread.
  void Forget(const std::string& user, std::function<void()> done);
  void GoDown(const Error& why);
  void MaybeFallen();
  void Release();
  void Probe();
  void Probed(const weir::redis::Answer& answer);
  void MaybeRecovered();
  void ForgetDirty();
  void FailRecovery();
  void ScheduleSync();
  void AddToStore(std::vector<CountDelta> deltas, std::vector<KeyedSend> keyed,
                  std::vector<Accepted> accepted);
  void Synced(const Status& status);

  // sending.cc
  void Begin(SendRequest send, Done<SendAnswer> done);
  void Submit(const RequestPtr& request);
  bool JoinSameKey(Request& request);
  void CheckKey(const RequestPtr& request);
  void Take(const RequestPtr& request);
  void Took(const RequestPtr& request, const Taken& taken);
  void Seen(const RequestPtr& request, const std::string& text);
  void Publish(const RequestPtr& request, Micros window_start, const SendAnswer& answer);
  void Published(const RequestPtr& request, Micros window_start, const SendAnswer& answer,
                 const Status& status);
  void Remember(const Request& request, Micros window_start, const SendAnswer& answer);
  void Fallback(const RequestPtr& request);
  void Answer(const RequestPtr& request, const Result<SendAnswer>& answer);

  // loading.cc
  void Miss(const RequestPtr& request);
  void StartLoads();
  using TakeRows =
      void (RedisGateway::*)(const std::vector<std::string>& users,
                             const Result<std::vector<std::optional<UserLimit>>>& rows);
  void LoadRows(const std::vector<std::string>& users, TakeRows take);
  void Loaded(const std::vector<std::string>& users,
              const Result<std::vector<std::optional<UserLimit>>>& rows);
  void Fill(const UserLimit& row);
  void Filled();
  void Verified(const std::vector<std::string>& users,
                const Result<std::vector<std::optional<UserLimit>>>& rows);
  void EndLoads();
  /// Answers all requests that wait for the user's hash.
  void FinishLoad(const std::string& user, const Result<SendAnswer>& answer);
  /// Lets those requests try again.
  void Retry(const std::string& user);
  void HoldLoads();
  void FailLoads(const Error& error);

  Micros Now() const { return NowMicros(clock_); }

  const Options options_;
  Gateway& fallback_;
  LimitStore& store_;
  Publisher& publisher_;
  const Clock& clock_;
  IoThread thread_;
  std::unique_ptr<weir::redis::Connection> connection_;
  Timer probe_timer_;
  Timer sync_timer_;
  bool sync_scheduled_ = false;
  bool closed_ = false;
  bool forgetting_ = false;
  std::function<void()> drained_;

  State state_ = State::kRecovering;
  std::atomic<bool> up_{false};
  std::string run_;                        // of the connected server
  std::size_t in_redis_ = 0;               // requests between their script and their confirmation
  std::size_t in_fallback_ = 0;            // requests in the fallback
  std::deque<RequestPtr> held_;            // kFalling, kRecovering
  std::unordered_set<std::string> dirty_;  // users to delete in Redis before it decides again
  Micros keys_elsewhere_until_ = 0;        // until then the table may have keys that Redis does not
  CountSync sync_;
  bool sync_failing_ = false;
  std::unordered_map<std::string, Load> loads_;
  bool loading_ = false;
  std::uint64_t load_round_ = 0;  // answers of an earlier round are ignored
  Micros load_now_ = 0;
  std::vector<std::string> to_verify_;
  std::size_t filling_ = 0;
  std::unordered_map<std::string, RequestPtr> by_key_;  // requests in progress that have a key
  std::atomic<std::size_t> waiting_{0};
};

}  // namespace weir::notify::redis
