#include "store/guard/guard.h"

#include <algorithm>
#include <utility>

#include "base/number.h"

namespace weir::store::guard {
namespace {

using telemetry::Level;

/// While the store is down, errors come with every check; one log line per interval is enough.
constexpr Nanos kLogEvery = 5'000'000'000;
constexpr std::size_t kHashDigits = 16;

}  // namespace

std::vector<std::string> DoubtsAbout(const GuardOptions& options) {
  constexpr std::chrono::milliseconds kPromised{1000};
  constexpr std::uint32_t kManyFailures = 50;
  std::vector<std::string> doubts;
  const auto back = options.timeout + options.breaker.longest_wait;
  if (back >= kPromised) {
    doubts.push_back("store_timeout of " + std::to_string(options.timeout.count()) +
                     " ms: after an outage the store decides again within " +
                     std::to_string(back.count()) +
                     " ms, not within a second, and while the store hangs each check waits that "
                     "long. Keep it below " +
                     std::to_string((kPromised - options.breaker.longest_wait).count()) + " ms");
  }
  if (options.breaker.failures > kManyFailures) {
    doubts.push_back(
        "store_breaker_failures of " + std::to_string(options.breaker.failures) +
        ": where few checks come, each of so many waits for store_timeout before the " +
        "store is left alone");
  }
  return doubts;
}

Guard::Guard(const GuardOptions& options)
    : options_(options),
      clock_(options.clock == nullptr ? SystemClock::Get() : *options.clock),
      cache_(options.cache) {
  for (std::uint32_t part = 0; part < kMaxParts; ++part) {
    breakers_.emplace_back(options.breaker, options.clock,
                           [this, part](BreakerState state) { OnChange(part, state); });
  }
}

std::shared_ptr<GuardMetrics> Guard::AddMetrics() {
  auto metrics = std::make_shared<GuardMetrics>();
  const std::lock_guard lock(mutex_);
  metrics_.push_back(metrics);
  return metrics;
}

void Guard::SetChannelUp(bool up) {
  if (channel_up_.exchange(up) == up) return;
  cache_.SetOn(up);
  Say(up ? Level::kInfo : Level::kWarn, up ? "channel between nodes is open; caching refusals"
                                           : "channel between nodes is lost; not caching refusals");
}

void Guard::Forget(std::span<const std::uint64_t> hashes) {
  OnForgotten(hashes);
  if (publish_) publish_(hashes);
}

void Guard::OnForgotten(std::span<const std::uint64_t> hashes) {
  for (const std::uint64_t hash : hashes) cache_.Forget(hash);
}

void Guard::NoteSuccess(std::uint32_t part) noexcept {
  // Read before write, as in Breaker. Once parts are known, none of them is part 0.
  const std::uint64_t bit = std::uint64_t{1} << part;
  if ((up_.load(std::memory_order_relaxed) & bit) == 0) {
    up_.fetch_or(bit, std::memory_order_relaxed);
    if (part != 0) up_.fetch_and(~std::uint64_t{1}, std::memory_order_relaxed);
  }
  last_success_.store(clock_.Now(), std::memory_order_relaxed);
}

void Guard::SetAwaited(bool awaited) {
  const std::lock_guard lock(mutex_);
  awaited_ = awaited;
}

void Guard::NoteError(std::uint32_t part, const Error& error) {
  up_.fetch_and(~(std::uint64_t{1} << part), std::memory_order_relaxed);
  const Nanos now = clock_.Now();
  const std::lock_guard lock(mutex_);
  last_error_ = error.message;
  last_error_at_ = now;
  if (now - logged_at_ < kLogEvery) return;
  logged_at_ = now;
  if (awaited_) return;
  Say(Level::kWarn, "the store is not responding; on_store_error decides",
      {{"error", std::string_view(error.message)}});
}

void Guard::NoteUndecided(const Error& error, std::string_view key) {
  const Nanos now = clock_.Now();
  const std::lock_guard lock(mutex_);
  if (now - undecided_logged_at_ < kLogEvery) return;
  undecided_logged_at_ = now;
  // Without the values, which may be personal data.
  Say(Level::kError,
      "a check cannot be decided; it is refused unless its policy has on_store_error: allow",
      {{"error", std::string_view(error.message)}, {"key", key.substr(0, key.find('|'))}});
}

void Guard::OnChange(std::uint32_t part, BreakerState state) {
  const std::lock_guard lock(mutex_);
  Nanos& since = away_since_[part];
  if (state == BreakerState::kOpen && since == 0) {
    since = clock_.Now();
    Say(Level::kError,
        part == 0 ? "the store is down; sending it no checks until it is back"
                  : "part of the store is down; sending it no checks until it is back",
        {{"error", std::string_view(last_error_)}});
  } else if (state == BreakerState::kClosed && since != 0) {
    Say(Level::kInfo,
        part == 0 ? "the store answers again; decisions are shared again"
                  : "part of the store answers again; decisions of its keys are shared again",
        {{"away_ms", (clock_.Now() - std::exchange(since, 0)) / 1'000'000}});
  }
}

BreakerState Guard::WorstState() const noexcept {
  BreakerState worst = BreakerState::kClosed;
  for (const Breaker& breaker : breakers_) worst = std::max(worst, breaker.state());
  return worst;
}

std::size_t Guard::PartsAway() const noexcept {
  return static_cast<std::size_t>(std::count_if(breakers_.begin(), breakers_.end(),
                                                [](const Breaker& one) { return !one.closed(); }));
}

Health Guard::health() const {
  Health health;
  health.up = up();
  health.breaker = WorstState();
  health.channel_up = channel_up_.load();
  const std::lock_guard lock(mutex_);
  health.last_error = last_error_;
  health.last_error_at = last_error_at_;
  return health;
}

void Guard::Collect(telemetry::TextWriter& out) const {
  const NamedGuard alone{{}, this};
  CollectGuards({&alone, 1}, out);
}

Guard::Figures Guard::ReadFigures() const {
  Figures figures;
  {
    const std::lock_guard lock(mutex_);
    figures.metrics = metrics_;
  }
  for (const auto& one : figures.metrics) figures.latencies.push_back(&one->latency);
  figures.up = up() ? 1 : 0;
  figures.breaker = static_cast<std::uint64_t>(WorstState());
  figures.parts_away = PartsAway();
  figures.channel_up = channel_up_.load() ? 1 : 0;
  figures.cache = cache_.counts();
  return figures;
}

std::uint64_t Guard::Figures::Sum(telemetry::LocalCounter GuardMetrics::*counter) const {
  std::uint64_t total = 0;
  for (const auto& one : metrics) total += ((*one).*counter).value();
  return total;
}

void CollectGuards(std::span<const NamedGuard> guards, telemetry::TextWriter& out) {
  using Figures = Guard::Figures;
  std::vector<Figures> all;
  for (const NamedGuard& one : guards) all.push_back(one.guard->ReadFigures());
  const auto each = [&](const auto& sample) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const telemetry::Label label{"store", guards[i].name};
      sample(all[i], std::span(&label, guards[i].name.empty() ? 0 : 1));
    }
  };
  const auto values = [&](const auto& value) {
    each([&](const Figures& figures, std::span<const telemetry::Label> labels) {
      out.Sample(std::uint64_t{value(figures)}, labels);
    });
  };
  const auto counter = [&](std::string_view name, std::string_view help,
                           telemetry::LocalCounter GuardMetrics::*which) {
    out.Counter(name, help);
    values([&](const Figures& figures) { return figures.Sum(which); });
  };
  out.Gauge("weir_store_up", "1 if the last call to the store succeeded.");
  values([](const Figures& figures) { return figures.up; });
  out.Gauge("weir_store_breaker_state", "Circuit breaker: 0 closed, 1 half open, 2 open.");
  values([](const Figures& figures) { return figures.breaker; });
  out.Gauge("weir_store_parts_away", "Parts of the store (masters of a cluster) that are down.");
  values([](const Figures& figures) { return figures.parts_away; });
  out.Gauge("weir_store_channel_up", "1 if the channel between nodes is open.");
  values([](const Figures& figures) { return figures.channel_up; });
  out.Histogram("weir_store_latency_seconds", "Time that calls to the store take.");
  each([&](const Figures& figures, std::span<const telemetry::Label> labels) {
    out.Samples(figures.latencies, labels);
  });
  counter("weir_store_calls_total", "Calls to the store.", &GuardMetrics::calls);
  counter("weir_store_failures_total", "Charges that the store could not decide.",
          &GuardMetrics::failures);
  counter("weir_store_undecided_total",
          "Charges that cannot be decided although the store is healthy: damaged data, or keys in "
          "several cluster slots.",
          &GuardMetrics::undecided);
  counter("weir_store_timeouts_total", "Charges that timed out.", &GuardMetrics::timeouts);
  counter("weir_store_short_cut_total", "Charges not sent because the breaker was open.",
          &GuardMetrics::short_cut);
  counter("weir_store_late_answers_total", "Calls that completed after their timeout.",
          &GuardMetrics::late_answers);
  const auto cached = [&](std::string_view name, std::string_view help,
                          std::uint64_t DenyCacheCounts::*which) {
    out.Counter(name, help);
    values([&](const Figures& figures) { return figures.cache.*which; });
  };
  cached("weir_deny_cache_hits_total",
         "Checks refused from the cache, without a call to the store.", &DenyCacheCounts::hits);
  cached("weir_deny_cache_kept_total", "Refusals added to the cache.", &DenyCacheCounts::kept);
  cached("weir_deny_cache_forgotten_total",
         "Keys removed from the cache: refunded or reset on any node.",
         &DenyCacheCounts::forgotten);
}

std::string WriteHashes(std::span<const std::uint64_t> hashes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(hashes.size() * kHashDigits);
  for (const std::uint64_t hash : hashes) {
    for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[(hash >> shift) & 15U];
  }
  return text;
}

std::optional<std::vector<std::uint64_t>> ReadHashes(std::string_view text) {
  if (text.size() % kHashDigits != 0 || text.size() > kMaxHashes * kHashDigits) return std::nullopt;
  std::vector<std::uint64_t> hashes;
  for (; !text.empty(); text.remove_prefix(kHashDigits)) {
    const auto hash = ParseNumber<std::uint64_t>(text.substr(0, kHashDigits), 16);
    if (!hash) return std::nullopt;
    hashes.push_back(*hash);
  }
  return hashes;
}

}  // namespace weir::store::guard
