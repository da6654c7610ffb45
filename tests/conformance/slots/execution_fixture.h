#pragma once

#include <string>
#include <vector>

#include "slots/execution.h"
#include "store_fixture.h"

// Events being executed, on every store. The test controls the clock: each call passes `now`.

namespace weir::slots {

inline constexpr Millis kNoon = 1'748'779'200'000;  // 2025-06-01T12:00:00Z, a multiple of 4,000
inline constexpr Millis kWindow = 4'000;
inline constexpr Millis kLease = 10'000;

inline Config Pay(std::int64_t max) {
  return {.name = "pay", .window_size = kWindow, .max_per_window = max};
}

class Execution : public StoreTest {
 protected:
  Claim ClaimAt(Millis now, std::size_t max = 1'000, Millis ahead = 0) {
    return client().Claim(
        {.config = "pay", .max = max, .lease = kLease, .ahead = ahead, .by = "test", .now = now});
  }
  Finished Done(const Claimed& event, Millis at) {
    return client()
        .Finish({{.event_id = event.slot.event_id, .attempt = event.attempt, .now = at}})
        .at(0);
  }
  void AllDone(const Claim& claim, Millis at) {
    std::vector<Finish> ends;
    for (const Claimed& event : claim.events) {
      ends.push_back({.event_id = event.slot.event_id, .attempt = event.attempt, .now = at});
    }
    for (const Finished answer : client().Finish(std::move(ends))) {
      EXPECT_EQ(answer, Finished::kOk);
    }
  }
};

}  // namespace weir::slots
