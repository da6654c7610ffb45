#pragma once

#include <cstdint>

#include "notify/notify.h"

namespace weir::notify {

/// The figures of a sender since it started, or the sum of several.
struct SenderFigures {
  std::int64_t delivered = 0;
  std::int64_t dead = 0;
  std::int64_t duplicate = 0;
  std::int64_t delayed = 0;
  std::int64_t dropped = 0;
  std::int64_t retries = 0;
  std::int64_t timed = 0;    ///< deliveries whose duration is known
  Micros took = 0;           ///< their total duration, from accepting each message to its delivery
  std::int64_t lag = 0;      ///< messages waiting on the topic
  std::int64_t senders = 1;  ///< how many are running; 0 in the last report

  /// The average duration of a delivery; 0 if there was none.
  Micros mean_time() const noexcept { return timed == 0 ? 0 : took / timed; }
};

}  // namespace weir::notify
