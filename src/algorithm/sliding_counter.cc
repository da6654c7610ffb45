#include "algorithm/sliding_counter.h"

#include <algorithm>
#include <array>
#include <limits>

#include "algorithm/answer.h"
#include "algorithm/bytes.h"
#include "algorithm/time_range.h"
#include "base/int128.h"

namespace weir::algorithm::sliding_counter {

namespace {

constexpr std::uint32_t kHeaderBytes = 18;
// Charges of one quota never push a bucket past its limit; a change of width may merge buckets.
constexpr std::int64_t kMaxCount = 2 * kMaxLimit;
constexpr std::uint32_t kMaxCountBytes = 6;

struct Header {
  std::int64_t index;
  Nanos width;
  std::uint16_t buckets;
};

Header ReadHeader(const std::uint8_t* at) noexcept {
  return {Load<std::int64_t>(at), Load<Nanos>(at + 8), Load<std::uint16_t>(at + 16)};
}

/// A key's counters in buckets of a given width: counts[a] is the bucket `a` before the newest.
/// Only the first `size` counts are set; the others are 0.
struct Buckets {
  Nanos width;
  std::int64_t slots;  // the newest this many count in full
  std::int64_t newest = 0;
  std::int64_t size = 0;
  std::array<std::int64_t, kMaxBuckets + 1> counts;

  // Does not initialize `counts`: 8 KiB that are mostly unused.
  Buckets(Nanos bucket_width, std::int64_t bucket_slots) noexcept
      : width(bucket_width), slots(bucket_slots) {}

  std::int64_t count(std::int64_t age) const noexcept {
    return age >= 0 && age < size ? counts[static_cast<std::size_t>(age)] : 0;
  }
  void Grow(std::int64_t to) noexcept {
    for (; size < to; ++size) counts[static_cast<std::size_t>(size)] = 0;
  }
};

// The index, in buckets of the given width, of the state's bucket `age` before its newest. A state
// kept with another width is re-sorted by the last nanosecond of each bucket: its charges count as
// later than they were, never as earlier.
std::int64_t IndexOf(const Header& header, std::int64_t age, Nanos width) noexcept {
  if (header.width == width) return header.index - age;
  const Nanos last = (header.index - age + 1) * header.width - 1;
  return FloorDivide(std::min(last, kLatest), width);
}

void AddCount(Buckets& buckets, const Header& header, std::int64_t age,
              std::int64_t count) noexcept {
  age = buckets.newest - IndexOf(header, age, buckets.width);
  if (age > buckets.slots) return;
  buckets.Grow(age + 1);
  std::int64_t& sum = buckets.counts[static_cast<std::size_t>(age)];
  sum = std::min(sum + count, kMaxCount);
}

void Read(const State& state, Buckets& buckets) noexcept {
  if (state.empty()) return;
  const Header header = ReadHeader(state.data);
  buckets.newest = IndexOf(header, 0, buckets.width);
  const std::uint8_t* at = state.data + kHeaderBytes;
  const std::uint8_t* const end = state.data + state.size;
  const bool same_width = header.width == buckets.width;
  for (std::int64_t age = 0; at != end; ++age) {
    std::uint64_t count = *at;
    at = count < 0x80 ? at + 1 : GetVarint(at, end, count);
    if (at == nullptr) return;
    if (!same_width) {
      AddCount(buckets, header, age, static_cast<std::int64_t>(count));
    } else if (age <= buckets.slots) {
      buckets.counts[static_cast<std::size_t>(buckets.size++)] = static_cast<std::int64_t>(count);
    }
  }
}

Nanos Width(const Quota& quota) noexcept {
  return (quota.window().count() - 1) / quota.buckets() + 1;
}

void Write(State& state, const Buckets& buckets) noexcept {
  Store(state.data, buckets.newest);
  Store(state.data + 8, buckets.width);
  Store(state.data + 16, static_cast<std::uint16_t>(buckets.slots));
  std::int64_t size = buckets.size;
  while (size > 0 && buckets.count(size - 1) == 0) --size;
  std::uint8_t* at = state.data + kHeaderBytes;
  for (std::int64_t age = 0; age < size; ++age) {
    at = PutVarint(at, static_cast<std::uint64_t>(buckets.counts[static_cast<std::size_t>(age)]));
  }
  state.size = static_cast<std::uint32_t>(at - state.data);
}

/// A key's counters at one time. `shift` is how many buckets the current one is after the newest;
/// slots + 1 means that all have slid out.
struct View {
  Nanos now = 0;  // of the clock
  std::int64_t current = 0;
  std::int64_t shift = 0;
  std::int64_t full = 0;     // in the newest N buckets
  std::int64_t partial = 0;  // in the bucket before them
  Nanos elapsed = 0;         // time since the current bucket began
};

// The part of `partial` that has not slid out.
std::int64_t Share(std::int64_t partial, Nanos elapsed, Nanos width) noexcept {
  const UInt128 product = static_cast<UInt128>(partial) * static_cast<UInt128>(width - elapsed);
  const auto divisor = static_cast<UInt128>(width);
  return static_cast<std::int64_t>((product + divisor - 1) / divisor);
}

View Look(const Buckets& buckets, const State& state, Nanos now) noexcept {
  View view{.now = ClampTime(now)};
  view.current = FloorDivide(view.now, buckets.width);
  if (!state.empty()) view.current = std::max(view.current, buckets.newest);
  const Nanos start = view.current * buckets.width;
  view.elapsed = view.now > start ? view.now - start : 0;
  if (state.empty()) return view;
  const std::uint64_t shift =
      static_cast<std::uint64_t>(view.current) - static_cast<std::uint64_t>(buckets.newest);
  const auto all_out = static_cast<std::uint64_t>(buckets.slots) + 1;
  view.shift = static_cast<std::int64_t>(std::min(shift, all_out));
  const std::int64_t oldest = std::min(buckets.size, buckets.slots - view.shift);
  for (std::int64_t age = 0; age < oldest; ++age) {
    view.full += buckets.counts[static_cast<std::size_t>(age)];
  }
  view.partial = buckets.count(buckets.slots - view.shift);
  return view;
}

std::int64_t Used(const Buckets& buckets, const View& view) noexcept {
  return view.full + Share(view.partial, view.elapsed, buckets.width);
}

// The time until a bucket is `elapsed` old. The bucket may be two windows ahead of a clock that is
// one before the end of time, so its beginning takes more than 64 bits.
std::chrono::nanoseconds UntilElapsed(const Buckets& buckets, std::int64_t index, Nanos elapsed,
                                      Nanos now) noexcept {
  const Int128 span = Int128{index} * buckets.width + elapsed - now;
  constexpr Int128 kMost = std::numeric_limits<Nanos>::max();
  return std::chrono::nanoseconds(static_cast<Nanos>(std::min(span, kMost)));
}

// The first time at which at most `room` permits are used, if nothing more is charged. Goes
// bucket by bucket; within one, solves partial * (width - elapsed) <= (room - full) * width for
// elapsed.
std::chrono::nanoseconds UntilUsedAtMost(const Buckets& buckets, View view,
                                         std::int64_t room) noexcept {
  while (view.full > room) {
    ++view.current;
    ++view.shift;
    view.partial = buckets.count(buckets.slots - view.shift);
    view.full -= view.partial;
  }
  Nanos elapsed = 0;
  if (view.partial > room - view.full) {
    const Int128 left = Int128{room - view.full} * buckets.width / view.partial;
    elapsed = buckets.width - static_cast<Nanos>(left);
  }
  return UntilElapsed(buckets, view.current, elapsed, view.now);
}

// The time until the newest charge has slid out. Requires one.
std::chrono::nanoseconds UntilFresh(const Buckets& buckets, const View& view) noexcept {
  std::int64_t age = 0;
  while (buckets.count(age) == 0) ++age;
  return UntilElapsed(buckets, buckets.newest - age + buckets.slots + 1, 0, view.now);
}

Decision Decide(const Quota& quota, const Buckets& buckets, const View& view,
                std::int64_t cost) noexcept {
  const std::int64_t used = Used(buckets, view);
  Decision decision = Answer(quota, used, cost);
  if (used > 0) decision.reset_after = UntilFresh(buckets, view);
  if (decision.verdict == Verdict::kLimited) {
    decision.retry_after = UntilUsedAtMost(buckets, view, quota.limit() - cost);
  }
  return decision;
}

// Shifts the counters so that the current bucket is the newest.
void Shift(Buckets& buckets, const View& view) noexcept {
  const std::int64_t kept = std::min(buckets.size, buckets.slots + 1 - view.shift);
  const auto begin = buckets.counts.begin();
  std::copy_backward(begin, begin + kept, begin + kept + view.shift);
  std::fill(begin, begin + view.shift, 0);
  buckets.size = kept > 0 ? kept + view.shift : 0;
  buckets.newest = view.current;
}

}  // namespace

// A zero count takes a byte; a charge may add as many zeros as there are buckets, and lengthen one.
std::uint32_t CapacityForAcquire(const Quota& quota, const State& state) noexcept {
  return std::max(state.size, kHeaderBytes) + static_cast<std::uint32_t>(quota.buckets()) + 1 +
         kMaxCountBytes;
}

Decision Peek(const Quota& quota, const State& state, Nanos now, std::int64_t cost) noexcept {
  Buckets buckets(Width(quota), quota.buckets());
  Read(state, buckets);
  return Decide(quota, buckets, Look(buckets, state, now), cost);
}

Decision Acquire(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept {
  Buckets buckets(Width(quota), quota.buckets());
  Read(state, buckets);
  View view = Look(buckets, state, now);
  if (!Charges(quota, Used(buckets, view), cost)) return Decide(quota, buckets, view, cost);
  Shift(buckets, view);
  buckets.Grow(1);
  buckets.counts[0] += cost;
  Write(state, buckets);
  view.shift = 0;
  view.full += cost;
  return Decide(quota, buckets, view, 0);
}

// The bucket that is sliding out counts in full against the maximum, so that only whole numbers are
// added everywhere.
Decision Overdraw(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept {
  Buckets buckets(Width(quota), quota.buckets());
  Read(state, buckets);
  View view = Look(buckets, state, now);
  if (const std::int64_t added = Overcharge(view.full + view.partial, cost); added > 0) {
    Shift(buckets, view);
    buckets.Grow(1);
    buckets.counts[0] += added;
    Write(state, buckets);
    view.shift = 0;
    view.full += added;
  }
  const std::int64_t used = Used(buckets, view);
  Decision decision = Standing(quota, used);
  if (used > 0) decision.reset_after = UntilFresh(buckets, view);
  if (!decision.allowed()) decision.retry_after = UntilUsedAtMost(buckets, view, quota.limit());
  return decision;
}

// Uses the state's own width, whatever the quota's, so the bytes never get longer.
Decision Refund(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept {
  if (state.empty()) return sliding_counter::Peek(quota, state, now, 0);
  const Header header = ReadHeader(state.data);
  Buckets buckets(header.width, header.buckets);
  Read(state, buckets);
  const std::int64_t seen =
      std::min(buckets.size, buckets.slots + 1 - Look(buckets, state, now).shift);
  for (std::int64_t age = 0; age < seen && cost > 0; ++age) {
    std::int64_t& count = buckets.counts[static_cast<std::size_t>(age)];
    const std::int64_t back = std::min(count, cost);
    count -= back;
    cost -= back;
  }
  Write(state, buckets);
  return sliding_counter::Peek(quota, state, now, 0);
}

// With another width the charge is in another bucket, perhaps with others: it stays charged.
void Return(const Quota& quota, State& state, Nanos at, std::int64_t count) noexcept {
  const Header header = ReadHeader(state.data);
  if (header.width != Width(quota)) return;
  Buckets buckets(header.width, header.buckets);
  Read(state, buckets);
  std::int64_t age = 0;  // `at` comes from outside and may be any number
  if (__builtin_sub_overflow(buckets.newest, FloorDivide(at, buckets.width), &age)) return;
  if (age < 0 || age >= buckets.size) return;
  std::int64_t& sum = buckets.counts[static_cast<std::size_t>(age)];
  sum -= std::min(sum, count);
  Write(state, buckets);
}

Nanos FreshAt(const State& state) noexcept {
  const Header header = ReadHeader(state.data);
  const std::uint8_t* at = state.data + kHeaderBytes;
  std::int64_t newest = header.index - header.buckets - 1;  // without counts, only the index counts
  std::int64_t index = header.index;
  for (std::uint64_t count = 0; count == 0 && at != state.data + state.size; --index) {
    at = GetVarint(at, state.data + state.size, count);
    if (count != 0) newest = index;
  }
  const Int128 then = (Int128{newest} + header.buckets + 1) * header.width;
  constexpr Int128 kMost = std::numeric_limits<Nanos>::max();
  return static_cast<Nanos>(std::min(then, kMost));
}

bool Valid(std::span<const std::uint8_t> bytes) noexcept {
  if (bytes.size() < kHeaderBytes) return false;
  const Header header = ReadHeader(bytes.data());
  if (header.buckets < 1 || header.buckets > kMaxBuckets) return false;
  if (header.width < 1 || header.width > kMaxWindow.count()) return false;
  if (Int128{header.width - 1} * header.buckets >= kMaxWindow.count()) return false;
  const Int128 start = Int128{header.index} * header.width;
  if (start > kLatest || start + header.width <= kEarliest) return false;

  const std::uint8_t* at = bytes.data() + kHeaderBytes;
  const std::uint8_t* const end = bytes.data() + bytes.size();
  std::uint64_t count = 1;
  for (std::uint16_t age = 0; at != end; ++age) {
    at = GetVarint(at, end, count);
    if (at == nullptr || count > kMaxCount || age > header.buckets) return false;
  }
  return count != 0;
}

}  // namespace weir::algorithm::sliding_counter
