#include "algorithm/charge_log.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <optional>
#include <type_traits>

#include "algorithm/bytes.h"
#include "algorithm/time_range.h"

namespace weir::algorithm {

namespace {

static_assert(std::is_trivially_copyable_v<LogHeader> &&
              offsetof(LogHeader, given_back) + 1 == kLogHeaderBytes);

constexpr std::uint8_t kCostFollows = 0x08;

void WriteHeader(State& state, const LogHeader& header) noexcept {
  std::memcpy(state.data, &header, kLogHeaderBytes);
}

// Unsigned, so that no pair of times can overflow it.
std::uint64_t Between(Nanos from, Nanos to) noexcept {
  return static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from);
}

Nanos After(Nanos from, std::uint64_t delta) noexcept {
  return static_cast<Nanos>(static_cast<std::uint64_t>(from) + delta);
}

/// An entry in its stored form.
struct Packed {
  std::uint64_t delta = 0;
  std::int64_t cost = 0;
};

// The code for the number of bytes that hold the rest of delta.
unsigned LengthCode(std::uint64_t rest) noexcept {
  return std::min((static_cast<unsigned>(std::bit_width(rest)) + 7) / 8, 7U);
}

std::uint8_t* PutEntry(std::uint8_t* at, Packed entry) noexcept {
  const std::uint64_t rest = entry.delta >> 4;
  const unsigned code = LengthCode(rest);
  const unsigned length = code == 7 ? 8 : code;
  const unsigned flag = entry.cost == 1 ? 0 : kCostFollows;
  *at++ = static_cast<std::uint8_t>(code | flag | (entry.delta & 0xF) << 4);
  std::memcpy(at, &rest, length);
  at += length;
  if (entry.cost == 1) return at;
  return PutVarint(at, static_cast<std::uint64_t>(entry.cost - 2));
}

// Reads one entry and returns the byte after it, or null if the bytes up to `end` do not begin with
// an entry as PutEntry writes it.
const std::uint8_t* GetEntry(const std::uint8_t* at, const std::uint8_t* end,
                             Packed& entry) noexcept {
  if (at == end) return nullptr;
  const std::uint8_t first = *at++;
  const unsigned code = first & 0x7;
  const unsigned length = code == 7 ? 8 : code;
  if (static_cast<std::size_t>(end - at) < length) return nullptr;
  std::uint64_t rest = 0;
  std::memcpy(&rest, at, length);
  at += length;
  if (LengthCode(rest) != code || rest >> 60 != 0) return nullptr;
  entry = {rest << 4 | first >> 4, 1};
  if ((first & kCostFollows) == 0) return at;
  std::uint64_t above = 0;
  at = GetVarint(at, end, above);
  if (at == nullptr || above > static_cast<std::uint64_t>(kMaxLimit) - 2) return nullptr;
  entry.cost = static_cast<std::int64_t>(above) + 2;
  return at;
}

Packed EntryAt(const State& state, std::uint32_t offset) noexcept {
  Packed entry;
  GetEntry(state.data + offset, state.data + state.size, entry);
  return entry;
}

/// Writes the newest entry at `offset`, where the state will end.
void PutTail(State& state, LogHeader& header, std::uint32_t offset, Packed entry) noexcept {
  header.tail = offset;
  state.size = static_cast<std::uint32_t>(PutEntry(state.data + offset, entry) - state.data);
}

/// As PutTail, for an entry that was returned.
void PutGivenBackTail(State& state, LogHeader& header, std::uint32_t offset,
                      std::uint64_t delta) noexcept {
  header.given_back = 1;
  PutTail(state, header, offset, {delta, 1});
}

// Frees the dead bytes when they have become an eighth of the live ones: often enough to stay
// small, rarely enough that moving the rest costs next to nothing per entry.
void Compact(State& state, LogHeader& header) noexcept {
  const std::uint32_t live = state.size - kLogHeaderBytes - header.head;
  if (header.head == 0 || header.head < live / 8) return;
  std::memmove(state.data + kLogHeaderBytes, state.data + kLogHeaderBytes + header.head, live);
  state.size -= header.head;
  header.tail -= header.head;
  header.head = 0;
}

void DropPrefix(State& state, LogHeader& header, const LogPrefix& prefix) noexcept {
  if (prefix.count == 0) return;
  header.total -= prefix.cost;
  header.count -= prefix.count;
  header.base = prefix.last;
  header.head = prefix.offset - kLogHeaderBytes;
  if (header.count > 0) Compact(state, header);
}

}  // namespace

LogHeader ReadHeader(const State& state) noexcept {
  return state.empty() ? LogHeader{} : ReadHeader(state.data);
}

LogHeader ReadHeader(const std::uint8_t* bytes) noexcept {
  LogHeader header;
  std::memcpy(static_cast<void*>(&header), bytes, kLogHeaderBytes);
  return header;
}

LogReader::LogReader(const State& state) noexcept
    : state_(state),
      header_(ReadHeader(state)),
      time_(header_.base),
      offset_(kLogHeaderBytes + header_.head) {}

bool LogReader::Next(LogEntry& entry) noexcept {
  if (offset_ >= state_.size) return false;
  Packed packed;
  const std::uint8_t* after = GetEntry(state_.data + offset_, state_.data + state_.size, packed);
  if (after == nullptr) return false;
  time_ = After(time_, packed.delta);
  const bool given_back = offset_ == header_.tail && header_.given_back != 0;
  entry = {time_, given_back ? 0 : packed.cost};
  offset_ = static_cast<std::uint32_t>(after - state_.data);
  return true;
}

LogPrefix PrefixThrough(const State& state, Nanos time) noexcept {
  LogReader reader(state);
  LogPrefix prefix{.offset = reader.offset()};
  if (reader.header().count > 0 && reader.header().newest <= time) {
    return {reader.header().total, reader.header().count, state.size, reader.header().newest};
  }
  for (LogEntry entry; reader.Next(entry) && entry.time <= time;) {
    prefix = {prefix.cost + entry.cost, prefix.count + 1, reader.offset(), entry.time};
  }
  return prefix;
}

Nanos TimeAtSum(const State& state, std::int64_t cost) noexcept {
  LogReader reader(state);
  std::int64_t sum = 0;
  for (LogEntry entry; reader.Next(entry);) {
    sum += entry.cost;
    if (sum >= cost) return entry.time;
  }
  return reader.header().newest;
}

Nanos NewestCharge(const State& state) noexcept {
  const LogHeader header = ReadHeader(state);
  return header.given_back == 0 ? header.newest : TimeAtSum(state, header.total);
}

std::uint32_t CapacityForAppend(const State& state) noexcept {
  return std::max(state.size, kLogHeaderBytes) + kMaxEntryBytes;
}

void Append(State& state, const LogPrefix& expired, LogEntry entry, std::int64_t mark) noexcept {
  LogHeader header = ReadHeader(state);
  DropPrefix(state, header, expired);
  if (header.count == 0) {
    header = {.base = entry.time, .count = 1};
    PutTail(state, header, kLogHeaderBytes, {0, entry.cost});
  } else {
    const std::uint64_t delta = Between(header.newest, entry.time);
    if (delta == 0 || header.given_back != 0 || header.count >= kMaxLogEntries) {
      const Packed old = EntryAt(state, header.tail);
      const std::int64_t kept = header.given_back != 0 ? 0 : old.cost;
      PutTail(state, header, header.tail, {old.delta + delta, kept + entry.cost});
    } else {
      PutTail(state, header, state.size, {delta, entry.cost});
      ++header.count;
    }
  }
  header.newest = entry.time;
  header.total += entry.cost;
  header.mark = mark;
  header.given_back = 0;
  WriteHeader(state, header);
}

// Neither removal makes the bytes longer: a lower cost needs at most as many bytes as before, and
// so does a sum of deltas.
void RemoveNewest(State& state, std::int64_t cost) noexcept {
  LogReader reader(state);
  LogHeader header = reader.header();
  const std::int64_t keep = header.total - cost;
  header.total = keep;
  header.count = 0;
  Nanos before = header.base;
  LogEntry last{.time = header.base};  // the last entry that stays, at least in part
  std::uint32_t at = reader.offset();
  std::int64_t sum = 0;
  while (sum < keep) {
    before = last.time;
    at = reader.offset();
    if (!reader.Next(last)) break;
    sum += last.cost;
    ++header.count;
  }
  if (keep > 0) {
    last.cost -= sum - keep;
    PutTail(state, header, at, {Between(before, last.time), last.cost});
    at = state.size;
  }
  if (keep == 0 || last.time != header.newest) {
    PutGivenBackTail(state, header, at, Between(last.time, header.newest));
    ++header.count;
  }
  WriteHeader(state, header);
}

namespace {

/// The entry of one time; its reader is positioned after it.
struct Place {
  LogReader reader;
  LogEntry entry;
  Nanos before = 0;      ///< the time of the entry in front of it
  std::uint32_t at = 0;  ///< its first byte
};

/// Nothing if no entry of `time` counts.
std::optional<Place> PlaceAt(const State& state, Nanos time) noexcept {
  Place place{.reader = LogReader(state), .entry = {}};
  place.entry.time = place.reader.header().base;
  do {
    place.before = place.entry.time;
    place.at = place.reader.offset();
    if (!place.reader.Next(place.entry)) return std::nullopt;
  } while (place.entry.time < time);
  if (place.entry.time != time || place.entry.cost == 0) return std::nullopt;
  return place;
}

}  // namespace

bool RemoveAt(State& state, Nanos time) noexcept {
  std::optional<Place> place = PlaceAt(state, time);
  if (!place) return false;
  auto& [reader, entry, before, at] = *place;
  LogHeader header = reader.header();

  header.total -= entry.cost;
  if (time == header.newest) {
    PutGivenBackTail(state, header, at, Between(before, time));
  } else {
    const std::uint32_t next_at = reader.offset();
    const Packed next = EntryAt(state, next_at);
    reader.Next(entry);
    const std::uint32_t rest = reader.offset();
    const std::uint32_t size = state.size;
    std::uint8_t* end = PutEntry(state.data + at, {Between(before, entry.time), next.cost});
    const auto gap = static_cast<std::uint32_t>(state.data + rest - end);
    std::memmove(end, state.data + rest, size - rest);
    state.size = size - gap;
    header.tail = next_at == header.tail ? at : header.tail - gap;
    --header.count;
  }
  WriteHeader(state, header);
  return true;
}

void TakeAt(State& state, Nanos time, std::int64_t cost) noexcept {
  const std::optional<Place> place = PlaceAt(state, time);
  if (!place) return;
  const auto& [reader, entry, before, at] = *place;
  LogHeader header = reader.header();
  if (entry.cost <= cost) {
    RemoveAt(state, time);
    return;
  }
  // A lower cost takes at most as many bytes.
  const std::uint32_t rest = reader.offset();
  std::uint8_t* end = PutEntry(state.data + at, {Between(before, time), entry.cost - cost});
  const auto gap = static_cast<std::uint32_t>(state.data + rest - end);
  std::memmove(end, state.data + rest, state.size - rest);
  state.size -= gap;
  if (header.tail > at) header.tail -= gap;
  header.total -= cost;
  WriteHeader(state, header);
}

bool ValidLog(std::span<const std::uint8_t> bytes) noexcept {
  constexpr Nanos kLast = kLatest + kMaxWindow.count() + kMaxLimit;
  if (bytes.size() <= kLogHeaderBytes || bytes.size() > kMaxLogBytes) return false;
  const LogHeader header = ReadHeader(bytes.data());
  if (header.head >= bytes.size() - kLogHeaderBytes || header.given_back > 1) return false;
  if (header.base < kEarliest || header.newest > kLast || header.base > header.newest) return false;

  const std::uint8_t* at = bytes.data() + kLogHeaderBytes + header.head;
  const std::uint8_t* const end = bytes.data() + bytes.size();
  const std::uint8_t* tail = at;
  Packed entry;
  std::uint64_t to_newest = Between(header.base, header.newest);
  std::uint32_t count = 0;
  std::int64_t total = 0;
  for (; at != end; ++count) {
    tail = at;
    at = GetEntry(at, end, entry);
    if (at == nullptr || entry.delta > to_newest || (entry.delta == 0 && count > 0)) return false;
    to_newest -= entry.delta;
    total += entry.cost;
    if (total > kMaxLimit + 1) return false;
  }
  if (header.given_back != 0) {
    if (entry.cost != 1) return false;
    --total;
  }
  return to_newest == 0 && count == header.count && count <= kMaxLogEntries &&
         total == header.total && total <= kMaxLimit && tail == bytes.data() + header.tail;
}

}  // namespace weir::algorithm
