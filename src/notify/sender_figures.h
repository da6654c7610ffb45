#pragma once

#include <cstdint>

#include "notify/notify.h"

namespace weir::notify {

/// What a sender has done since it started, or several of them together.
struct SenderFigures {
  std::int64_t delivered = 0;
  std::int64_t dead = 0;
  std::int64_t duplicate = 0;
  std::int64_t delayed = 0;
  std::int64_t dropped = 0;
  std::int64_t retries = 0;
  std::int64_t timed = 0;    ///< deliveries of which it is known how long they took
  Micros took = 0;           ///< those together, from accepting each message to its delivery
  std::int64_t lag = 0;      ///< messages that wait on the topic
  std::int64_t senders = 1;  ///< how many are running; 0 in a last report

  /// How long a delivery took on average; 0 if there was none.
  Micros mean_time() const noexcept { return timed == 0 ? 0 : took / timed; }
};

}  // namespace weir::notify
