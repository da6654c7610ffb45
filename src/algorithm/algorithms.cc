#include "algorithm/algorithms.h"

#include <string>

#include "algorithm/anchored_window.h"
#include "algorithm/charge_log.h"
#include "algorithm/concurrency.h"
#include "algorithm/fixed_window.h"
#include "algorithm/sliding_counter.h"
#include "algorithm/sliding_log.h"
#include "algorithm/token_bucket.h"

namespace weir::algorithm {
namespace {

template <std::uint32_t kBytes>
std::uint32_t Always(const Quota&, const State&) noexcept {
  return kBytes;
}

std::uint32_t ForAppend(const Quota&, const State& state) noexcept {
  return CapacityForAppend(state);
}

Result<Quota> MakeTokenBucket(const Numbers& n) {
  return Quota::TokenBucket(n.limit, n.refill, n.period);
}
Result<Quota> MakeFixedWindow(const Numbers& n) { return Quota::FixedWindow(n.limit, n.window); }
Result<Quota> MakeSlidingLog(const Numbers& n) { return Quota::SlidingLog(n.limit, n.window); }
Result<Quota> MakeSlidingCounter(const Numbers& n) {
  return Quota::SlidingCounter(n.limit, n.window, n.buckets);
}
Result<Quota> MakeConcurrency(const Numbers& n) { return Quota::Concurrency(n.limit, n.window); }
Result<Quota> MakeAnchoredWindow(const Numbers& n) {
  return Quota::AnchoredWindow(n.limit, n.window);
}

}  // namespace

constexpr std::array<Descriptor, kCount> kTable = {{
    {.algorithm = Algorithm::kTokenBucket,
     .name = "token_bucket",
     .type = "TOKEN_BUCKET",
     .title = "Token bucket",
     .letter = 't',
     .limit_name = "capacity",
     .span_name = "",
     .make = MakeTokenBucket,
     .capacity = token_bucket::CapacityForAcquire,
     .peek = token_bucket::Peek,
     .acquire = token_bucket::Acquire,
     .overdraw = token_bucket::Overdraw,
     .refund = token_bucket::Refund,
     .release = nullptr,
     .fresh_at = token_bucket::FreshAt,
     .valid = token_bucket::Valid},
    {.algorithm = Algorithm::kFixedWindow,
     .name = "fixed_window",
     .type = "FIXED_WINDOW",
     .title = "Fixed window",
     .letter = 'f',
     .limit_name = "limit",
     .span_name = "window",
     .aligned = true,
     .make = MakeFixedWindow,
     .capacity = Always<FixedWindow::kBytes>,
     .peek = FixedWindow::Peek,
     .acquire = FixedWindow::Acquire,
     .overdraw = FixedWindow::Overdraw,
     .refund = FixedWindow::Refund,
     .release = nullptr,
     .fresh_at = FixedWindow::FreshAt,
     .valid = FixedWindow::Valid},
    {.algorithm = Algorithm::kSlidingLog,
     .name = "sliding_log",
     .type = "SLIDING_WINDOW",
     .title = "Sliding window (exact)",
     .letter = 'l',
     .limit_name = "limit",
     .span_name = "window",
     .logged = true,
     .make = MakeSlidingLog,
     .capacity = ForAppend,
     .peek = sliding_log::Peek,
     .acquire = sliding_log::Acquire,
     .overdraw = sliding_log::Overdraw,
     .refund = sliding_log::Refund,
     .release = nullptr,
     .fresh_at = sliding_log::FreshAt,
     .valid = sliding_log::Valid},
    {.algorithm = Algorithm::kSlidingCounter,
     .name = "sliding_counter",
     .type = "SLIDING_COUNTER",
     .title = "Sliding window (counters)",
     .letter = 'c',
     .limit_name = "limit",
     .span_name = "window",
     .has_buckets = true,
     .aligned = true,
     .make = MakeSlidingCounter,
     .capacity = sliding_counter::CapacityForAcquire,
     .peek = sliding_counter::Peek,
     .acquire = sliding_counter::Acquire,
     .overdraw = sliding_counter::Overdraw,
     .refund = sliding_counter::Refund,
     .release = nullptr,
     .fresh_at = sliding_counter::FreshAt,
     .valid = sliding_counter::Valid},
    {.algorithm = Algorithm::kConcurrency,
     .name = "concurrency",
     .type = "CONCURRENCY",
     .title = "Concurrency",
     .letter = 'n',
     .limit_name = "limit",
     .span_name = "lease",
     .leases = true,
     .logged = true,
     .make = MakeConcurrency,
     .capacity = ForAppend,
     .peek = concurrency::Peek,
     .acquire = concurrency::Acquire,
     .overdraw = concurrency::Overdraw,
     .refund = concurrency::Refund,
     .release = concurrency::Release,
     .fresh_at = concurrency::FreshAt,
     .valid = concurrency::Valid},
    {.algorithm = Algorithm::kAnchoredWindow,
     .name = "anchored_window",
     .type = "ANCHORED_WINDOW",
     .title = "Window from the first request",
     .letter = 'a',
     .limit_name = "limit",
     .span_name = "window",
     .make = MakeAnchoredWindow,
     .capacity = Always<AnchoredWindow::kBytes>,
     .peek = AnchoredWindow::Peek,
     .acquire = AnchoredWindow::Acquire,
     .overdraw = AnchoredWindow::Overdraw,
     .refund = AnchoredWindow::Refund,
     .release = nullptr,
     .fresh_at = AnchoredWindow::FreshAt,
     .valid = AnchoredWindow::Valid},
}};

// A row that is missing or out of place does not compile.
constexpr bool EachAtItsNumber() {
  for (std::size_t i = 0; i < kCount; ++i) {
    if (static_cast<std::size_t>(kTable[i].algorithm) != i || kTable[i].make == nullptr)
      return false;
  }
  return true;
}
static_assert(EachAtItsNumber());

constinit const std::array<Descriptor, kCount> kAlgorithms = kTable;

const Descriptor* FindNamed(std::string_view name) noexcept {
  for (const Descriptor& each : kAlgorithms) {
    if (each.name == name || each.type == name) return &each;
  }
  return nullptr;
}

const Descriptor* FindTag(std::uint64_t tag) noexcept {
  return tag < kCount ? &kAlgorithms[tag] : nullptr;
}

const Descriptor* FindLetter(char letter) noexcept {
  for (const Descriptor& each : kAlgorithms) {
    if (each.letter == letter) return &each;
  }
  return nullptr;
}

std::string Listed(std::string_view Descriptor::*names) {
  std::string list;
  for (std::size_t i = 0; i < kCount; ++i) {
    if (i > 0) list += i + 1 < kCount ? ", " : " or ";
    list += kAlgorithms[i].*names;
  }
  return list;
}

Numbers NumbersOf(const Quota& quota) noexcept {
  return {.limit = quota.limit(),
          .refill = quota.refill(),
          .period = quota.period(),
          .window = quota.window(),
          .buckets = quota.buckets()};
}

}  // namespace weir::algorithm
