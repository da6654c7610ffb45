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
  Nanos open = 0;
};

Nanos Bounded(std::uint64_t ns) noexcept {
  return static_cast<Nanos>(std::min<std::uint64_t>(ns, kNothingYet));
}
Nanos Down(Span span) noexcept { return Bounded(span.ns); }
Nanos Up(Span span) noexcept { return Bounded(span.ns + (span.frac != 0 ? 1 : 0)); }

/// Requires that neither is negative.
Nanos Sum(Nanos a, Nanos b) noexcept {
  return Bounded(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

Mark ReadMark(const std::uint8_t* at) noexcept {
  return {Load<Nanos>(at), Load<Nanos>(at + 8), Load<Nanos>(at + 16)};
}

/// The marks of one bucket, unpacked. Not thread-safe, like any value.
class Marks {
 public:
  /// Those that are still needed at `now`.
  Marks(const State& state, Nanos now) noexcept {
    if (!Has(state)) return;
    const std::uint8_t* at = state.data + kTokenBucketBytes;
    until_ = Load<Nanos>(at);
    floor_ = Load<Nanos>(at + 8);
    at += kHeadBytes;
    for (const std::uint8_t* const end = state.data + state.size; at < end; at += kMarkBytes) {
      marks_[count_++] = ReadMark(at);
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
      Store(at + 16, marks_[i].open);
    }
    state.size = static_cast<std::uint32_t>(at - state.data);
  }

  /// Adds the newest mark, which also covers the charges of marks that were not lower.
  void Push(Mark mark) noexcept {
    for (; count_ > 0 && marks_[count_ - 1].low >= mark.low; --count_) {
      mark.open = Sum(mark.open, marks_[count_ - 1].open);
    }
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

  Nanos Add(Nanos now, Nanos time, Nanos until) noexcept {
    until_ = std::max(until_, until);
    if (count_ == 0) floor_ = std::max(floor_, now - 1);
    const Nanos stamp = std::min(std::max(now, newest() + 1), kLastStamp);
    if (stamp == newest()) {  // the end of time: it has the same stamp as the one before
      floor_ = stamp;
      count_ = 0;
      return stamp;
    }
    Push({stamp, kNothingYet, time});
    LeaveOut();
    if (count_ > kMostMarks) Merge();
    return stamp;
  }

  /// The first mark that covers a charge; count() if there is none.
  std::uint32_t Find(Nanos stamp) const noexcept {
    if (stamp <= floor_) return count_;
    std::uint32_t i = 0;
    while (i < count_ && marks_[i].stamp < stamp) ++i;
    return i;
  }

  /// `freed` was returned for a charge that mark `from` covers: had that much less been charged,
  /// all lows since would be lower.
  void Free(std::uint32_t from, Span freed) noexcept {
    const std::uint32_t count = count_;
    const std::array<Mark, kMostMarks + 1> marks = marks_;
    count_ = from;
    for (std::uint32_t i = from; i < count; ++i) {
      const Nanos closed = i == from ? Down(freed) : 0;
      Push({marks[i].stamp, std::max<Nanos>(marks[i].low - Up(freed), 0),
            std::max<Nanos>(marks[i].open - closed, 0)});
    }
  }

  std::uint32_t count() const noexcept { return count_; }
  Nanos low(std::uint32_t i) const noexcept { return marks_[i].low; }

 private:
  Nanos newest() const noexcept { return count_ > 0 ? marks_[count_ - 1].stamp : floor_; }

  /// Leaves out the marks that are no bound: less than their low can be returned for the charges up
  /// to them. The next mark covers those charges.
  void LeaveOut() noexcept {
    const std::uint32_t count = count_;
    Nanos most = 0;      // that can be returned for the charges up to the last mark that stays
    Nanos left_out = 0;  // what is open of those since
    count_ = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      Mark mark = marks_[i];
      mark.open = Sum(mark.open, left_out);
      const Nanos with_it = Sum(most, mark.open);
      const bool bound = mark.low < with_it || i + 1 == count;
      left_out = bound ? 0 : mark.open;
      if (!bound) continue;
      most = std::min(with_it, mark.low);
      marks_[count_++] = mark;
    }
  }

  /// Of the two neighbours that differ least in proportion, the later one takes the low of the
  /// earlier. High lows matter little, as long as they stay higher than what is settled. The
  /// quotients are the same as in Redis' script, to the last bit.
  void Merge() noexcept {
    const auto quotient = [this](std::uint32_t i) {
      return static_cast<double>(marks_[i].low) / static_cast<double>(marks_[i - 1].low);
    };
    std::uint32_t at = 1;
    for (std::uint32_t i = 2; i < count_; ++i) {
      if (quotient(i) < quotient(at)) at = i;
    }
    marks_[at].low = marks_[at - 1].low;
    marks_[at].open = Sum(marks_[at].open, marks_[at - 1].open);
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
  marks.Lower(Down(debt));
  marks.Write(state, now);
}

Nanos Add(State& state, Nanos now, Span time, Nanos until) noexcept {
  Marks marks(state, now);
  const Nanos stamp = marks.Add(now, Up(time), until);
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
  marks.Free(marks.Find(stamp), freed);
  marks.Lower(Down(debt));
  marks.Write(state, now);
}

bool Valid(std::span<const std::uint8_t> bytes) noexcept {
  if (bytes.empty()) return true;
  if (bytes.size() < kHeadBytes || (bytes.size() - kHeadBytes) % kMarkBytes != 0 ||
      bytes.size() > kHeadBytes + kMostMarks * kMarkBytes) {
    return false;
  }
  const auto until = Load<Nanos>(bytes.data());
  Mark last{.stamp = Load<Nanos>(bytes.data() + 8)};
  if (until < kEarliest || until > kLastStamp || last.stamp < kEarliest - 1) return false;
  for (std::size_t at = kHeadBytes; at < bytes.size(); at += kMarkBytes) {
    const Mark mark = ReadMark(bytes.data() + at);
    if (mark.stamp <= last.stamp || mark.low <= last.low || mark.open < 0) return false;
    last = mark;
  }
  return last.stamp <= kLastStamp;
}

}  // namespace weir::algorithm::low_marks
