#pragma once

// What stands between the limiter and a store that lives in another process. Guard is what the
// reactors share: breaker, cache of refusals, messages to other nodes, counters. GuardedStore is a
// reactor's own part, Prober finds out when the store is back.

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/guard/breaker.h"
#include "store/guard/deny_cache.h"
#include "store/store.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"
#include "weir/clock.h"
#include "weir/result.h"

namespace weir::store::guard {

struct GuardOptions {
  /// From Apply to its answer, whatever the store does.
  std::chrono::milliseconds timeout{100};
  /// Concurrent applications of one reactor that wait for the store; more are refused immediately.
  std::size_t max_waiting = 65'536;
  BreakerOptions breaker;
  DenyCacheOptions cache;
  const Clock* clock = nullptr;  ///< null: SystemClock
  bool quiet = false;            ///< logs nothing: this is a library in another program
};

/// Describes the options that break a promise, and which promise.
std::vector<std::string> DoubtsAbout(const GuardOptions& options);

/// The store's state, for people.
struct Health {
  bool up = false;  ///< its last call succeeded; of several parts, that of any
  BreakerState breaker = BreakerState::kClosed;  ///< of several parts, the worst
  bool channel_up = false;                       ///< messages between nodes arrive
  std::string last_error;                        ///< empty: none yet
  Nanos last_error_at = 0;
};

/// Counters of one reactor's guarded store, written by its thread and readable by any.
struct GuardMetrics {
  telemetry::LocalHistogram latency;
  telemetry::LocalCounter calls;
  telemetry::LocalCounter failures;      ///< applications that failed with the store
  telemetry::LocalCounter undecided;     ///< applications that cannot be decided at all: FaultOf
  telemetry::LocalCounter timeouts;      ///< applications that it did not decide in time
  telemetry::LocalCounter short_cut;     ///< applications failed while the breaker was open
  telemetry::LocalCounter late_answers;  ///< calls whose answer came after their timeout
};

/// Thread-safe. Must outlive the stores it guards.
class Guard {
 public:
  /// Sends key hashes to the other nodes. Called on any thread; must not block.
  using Publish = std::function<void(std::span<const std::uint64_t>)>;

  explicit Guard(const GuardOptions& options);

  const GuardOptions& options() const noexcept { return options_; }
  const Clock& clock() const noexcept { return clock_; }
  /// Each part of the store has its own: a dead shard must not affect the others.
  Breaker& breaker(std::uint32_t part = 0) noexcept { return breakers_[part]; }
  DenyCache& cache() noexcept { return cache_; }
  std::shared_ptr<GuardMetrics> AddMetrics();

  /// Before the reactors start.
  void SetPublish(Publish publish) { publish_ = std::move(publish); }
  /// The channel between nodes came up or went down. The cache is off while it is down.
  void SetChannelUp(bool up);
  /// Permits of these keys were returned by this node.
  void Forget(std::span<const std::uint64_t> hashes);
  /// The same, announced by another node.
  void OnForgotten(std::span<const std::uint64_t> hashes);

  /// While true, errors are not logged: the caller waits for the first answer, and reports why
  /// there is none.
  void SetAwaited(bool awaited);
  void NoteSuccess(std::uint32_t part) noexcept;
  void NoteError(std::uint32_t part, const Error& error);
  /// The store is up, but cannot decide the application for `key`.
  void NoteUndecided(const Error& error, std::string_view key);
  /// True if the last call of some part succeeded.
  bool up() const noexcept { return up_.load(std::memory_order_relaxed) != 0; }
  Nanos last_success() const noexcept { return last_success_.load(std::memory_order_relaxed); }
  Health health() const;

  /// weir_store_*.
  void Collect(telemetry::TextWriter& out) const;

  /// The values that a scrape reports.
  struct Figures {
    std::vector<std::shared_ptr<GuardMetrics>> metrics;
    std::vector<const telemetry::LocalHistogram*> latencies;
    std::uint64_t up = 0;
    std::uint64_t breaker = 0;
    std::uint64_t parts_away = 0;
    std::uint64_t channel_up = 0;
    DenyCacheCounts cache;

    std::uint64_t Sum(telemetry::LocalCounter GuardMetrics::*counter) const;
  };
  Figures ReadFigures() const;

 private:
  void OnChange(std::uint32_t part, BreakerState state);
  void Say(telemetry::Level level, std::string_view message,
           std::initializer_list<telemetry::Field> fields = {}) const {
    if (!options_.quiet) telemetry::Log(level, message, fields);
  }
  BreakerState WorstState() const noexcept;
  std::size_t PartsAway() const noexcept;

  const GuardOptions options_;
  const Clock& clock_;
  std::deque<Breaker> breakers_;  // kMaxParts
  DenyCache cache_;
  Publish publish_;
  std::atomic<bool> channel_up_{false};
  std::atomic<std::uint64_t> up_{0};  // a bit for each part
  std::atomic<Nanos> last_success_{0};
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<GuardMetrics>> metrics_;
  std::string last_error_;
  Nanos last_error_at_ = 0;
  Nanos logged_at_ = 0;
  bool awaited_ = false;
  Nanos undecided_logged_at_ = 0;
  std::array<Nanos, kMaxParts> away_since_{};  // 0: it is up
};

/// One of several guards, with the name of its store; empty: there is only one, and no label.
struct NamedGuard {
  std::string_view name;
  const Guard* guard;
};
/// weir_store_* of all, each under the label `store`.
void CollectGuards(std::span<const NamedGuard> guards, telemetry::TextWriter& out);

/// Key hashes as the text of a message, and back: 16 hexadecimal digits each.
std::string WriteHashes(std::span<const std::uint64_t> hashes);
/// Nothing if the text is anything else: some other program wrote to our channel.
std::optional<std::vector<std::uint64_t>> ReadHashes(std::string_view text);
/// The most hashes in one message.
inline constexpr std::size_t kMaxHashes = 256;

}  // namespace weir::store::guard
