#include "slots/postgres/timings.h"

#include <vector>

namespace weir::slots::postgres {
namespace {

constexpr Millis kMaxClockDifference = 24 * 3'600'000;
constexpr std::size_t kOpenTimesAround = 8;

void AppendTimes(weir::postgres::Params& params, const std::vector<OpenTime>& open) {
  std::vector<std::int64_t> from;
  std::vector<std::int64_t> until;
  for (const OpenTime& time : open) {
    from.push_back(time.from);
    until.push_back(time.until);
  }
  if (open.empty()) {
    params.Null().Null();
  } else {
    params.IntArray(from).IntArray(until);
  }
}

}  // namespace

void AppendTiming(weir::postgres::Params& params, const Config* timed,
                  std::optional<Timing>& timing, std::span<const Millis> earliest) {
  params.Int(timed == nullptr ? 0 : timed->version);
  AppendTimes(params, timing ? timing->Open(earliest) : std::vector<OpenTime>());
}

void AppendOpenNow(weir::postgres::Params& params, const Config* timed, Millis now) {
  params.Int(timed == nullptr ? 0 : timed->version);
  std::vector<OpenTime> open;
  if (timed != nullptr && timed->calendar.any()) {
    const Millis from = now - kMaxClockDifference;
    open = OpenTimes(timed->calendar).List({&from, 1}, kOpenTimesAround);
    if (open.empty()) open.push_back({0, 0});
  }
  AppendTimes(params, open);
}

}  // namespace weir::slots::postgres
