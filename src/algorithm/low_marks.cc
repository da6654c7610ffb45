#include "algorithm/low_marks.h"

#include <algorithm>
#include <array>
#include <limits>

#include "algorithm/bytes.h"
#include "algorithm/time_range.h"

namespace weir::algorithm::low_marks {
namespace {

using token_bucket::Span;

constexpr Nanos kNothingYet = std::numeric_limits<Nanos>::max();  // no low: nothing has happened
constexpr Nanos kLastStamp = kLatest + kMaxWindow.count();

struct Mark {
  Nanos stamp = 0;
  Nanos low = 0;
};

Nanos Whole(Span debt) noexcept {
  return static_cast<Nanos>(std::min<std::uint64_t>(debt.ns, kNothingYet));
}

/// The marks of one bucket, unpacked. Not thread-safe, like any value.
class Marks {
 public:
  /// Those that still matter at `now`.
  Marks(const State& state, Nanos now) noexcept {
    if (!Has(state)) return;
    const std::uint8_t* at = state.data + kTokenBucketBytes;
    until_ = Load<Nanos>(at);
    floor_ = Load<Nanos>(at + 8);
    at += kHeadBytes;
    for (const std::uint8_t* const end = state.data + state.size; at < end; at += kMarkBytes) {
      marks_[count_++] = {Load<Nanos>(at), Load<Nanos>(at + 8)};
    }
    if (until_ > now) return;
    floor_ = newest();
    count_ = 0;
  }

  void Write(State& state, Nanos now) const noexcept {
    state.size = kTokenBucketBytes;
    if (until_ <= now) return;
    std::uint8_t* at = state.data + kTokenBucketBytes;
    Store(at, until_);
    Store(at + 8, floor_);
    at += kHeadBytes;
    for (std::uint32_t i = 0; i < count_; ++i, at += kMarkBytes) {
      Store(at, marks_[i].stamp);
      Store(at + 8, marks_[i].low);
    }
    state.size = static_cast<std::uint32_t>(at - state.data);
  }

  /// Adds the newest mark; those before it have been as low.
  void Push(Mark mark) noexcept {
    while (count_ > 0 && marks_[count_ - 1].low >= mark.low) --count_;
    if (mark.low > 0) {
      marks_[count_++] = mark;
    } else {
      floor_ = mark.stamp;
    }
  }

  void Lower(Nanos low) noexcept {
    if (count_ == 0 || marks_[count_ - 1].low <= low) return;
    Push({marks_[count_ - 1].stamp, low});
  }

  Nanos Add(Nanos now, Nanos until) noexcept {
    until_ = std::max(until_, until);
    if (count_ == 0) floor_ = std::max(floor_, now - 1);
    const Nanos stamp = std::min(std::max(now, newest() + 1), kLastStamp);
    if (stamp == newest()) {  // the end of time: it cannot be told from the one before
      floor_ = stamp;
      count_ = 0;
      return stamp;
    }
    Push({stamp, kNothingYet});
    if (count_ > kMostMarks) Merge();
    return stamp;
  }

  /// The first mark that speaks for a charge; count() if none does.
  std::uint32_t Find(Nanos stamp) const noexcept {
    if (stamp <= floor_) return count_;
    std::uint32_t i = 0;
    while (i < count_ && marks_[i].stamp < stamp) ++i;
    return i;
  }

  /// Had less been charged by `freed` at the time of mark `from`, all lows since would be less.
  void LowerFrom(std::uint32_t from, Nanos freed) noexcept {
    const std::uint32_t count = count_;
    const std::array<Mark, kMostMarks + 1> marks = marks_;
    count_ = from;
    for (std::uint32_t i = from; i < count; ++i) {
      Push({marks[i].stamp, std::max<Nanos>(marks[i].low - freed, 0)});
    }
  }

  std::uint32_t count() const noexcept { return count_; }
  Nanos low(std::uint32_t i) const noexcept { return marks_[i].low; }

 private:
  Nanos newest() const noexcept { return count_ > 0 ? marks_[count_ - 1].stamp : floor_; }

  /// Of two neighbours the later one takes over the low of the earlier: where that loses the least.
  void Merge() noexcept {
    std::uint32_t at = 0;
    for (std::uint32_t i = 1; i < count_; ++i) {
      const Nanos before = at == 0 ? 0 : marks_[at - 1].low;
      if (marks_[i].low - marks_[i - 1].low < marks_[at].low - before) at = i;
    }
    if (at == 0) {
      floor_ = marks_[0].stamp;
      at = 1;
    } else {
      marks_[at].low = marks_[at - 1].low;
    }
    std::copy(marks_.begin() + at, marks_.begin() + count_, marks_.begin() + at - 1);
    --count_;
  }

  Nanos until_ = std::numeric_limits<Nanos>::min();
  Nanos floor_ = std::numeric_limits<Nanos>::min();
  std::uint32_t count_ = 0;
  std::array<Mark, kMostMarks + 1> marks_;
};

}  // namespace

std::uint32_t CapacityForAdd(const State& state) noexcept {
  const std::uint32_t more = Has(state) ? kMarkBytes : kHeadBytes + kMarkBytes;
  return std::min(std::max(state.size, kTokenBucketBytes) + more, kMostBytes);
}

void Lower(State& state, Nanos now, Span debt) noexcept {
  if (!Has(state)) return;
  Marks marks(state, now);
  marks.Lower(Whole(debt));
  marks.Write(state, now);
}

Nanos Add(State& state, Nanos now, Nanos until) noexcept {
  Marks marks(state, now);
  const Nanos stamp = marks.Add(now, until);
  marks.Write(state, now);
  return stamp;
}

Span LowSince(const State& state, Nanos now, Nanos stamp) noexcept {
  const Marks marks(state, now);
  const std::uint32_t i = marks.Find(stamp);
  if (i == marks.count()) return {};
  return {static_cast<std::uint64_t>(marks.low(i)), 0};
}

void Free(State& state, Nanos now, Nanos stamp, Span freed, Span debt) noexcept {
  Marks marks(state, now);
  marks.LowerFrom(marks.Find(stamp), Whole({freed.ns + (freed.frac != 0 ? 1 : 0), 0}));
  marks.Lower(Whole(debt));
  marks.Write(state, now);
}

bool Valid(std::span<const std::uint8_t> bytes) noexcept {
  if (bytes.empty()) return true;
  if (bytes.size() < kHeadBytes || (bytes.size() - kHeadBytes) % kMarkBytes != 0 ||
      bytes.size() > kHeadBytes + kMostMarks * kMarkBytes) {
    return false;
  }
  const auto until = Load<Nanos>(bytes.data());
  Mark last{Load<Nanos>(bytes.data() + 8), 0};
  if (until < kEarliest || until > kLastStamp || last.stamp < kEarliest - 1) return false;
  for (std::size_t at = kHeadBytes; at < bytes.size(); at += kMarkBytes) {
    const Mark mark{Load<Nanos>(bytes.data() + at), Load<Nanos>(bytes.data() + at + 8)};
    if (mark.stamp <= last.stamp || mark.low <= last.low) return false;
    last = mark;
  }
  return last.stamp <= kLastStamp;
}

}  // namespace weir::algorithm::low_marks
