#pragma once

// A user's preferences: no messages on some channels, and none during quiet hours.

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "notify/notify.h"
#include "weir/result.h"

namespace weir::notify {

inline constexpr std::size_t kMaxOptOuts = 32;
inline constexpr std::size_t kMaxZoneBytes = 64;

/// Every day from one time of day to another, in a time zone; from 22:00 to 07:00 is overnight.
struct QuietHours {
  int from = 0;  ///< minutes since midnight, as is `to`; never the same
  int to = 0;
  std::string zone = "UTC";  ///< an IANA name

  friend bool operator==(const QuietHours&, const QuietHours&) = default;
};

struct Preferences {
  std::string user_id;
  std::optional<QuietHours> quiet = {};
  std::vector<std::string> opted_out = {};  ///< channels; "*": all

  bool OptedOut(std::string_view channel) const {
    return std::any_of(opted_out.begin(), opted_out.end(),
                       [&](const std::string& one) { return one == "*" || one == channel; });
  }

  friend bool operator==(const Preferences&, const Preferences&) = default;
};

/// kInvalidArgument says what is wrong, such as a zone that this machine does not know.
Status CheckPreferences(const Preferences& preferences);

/// "22:00" ⇄ minutes.
Result<int> ParseTimeOfDay(std::string_view text);
std::string FormatTimeOfDay(int minutes);

/// When the quiet hours that contain `now` end; `now` itself if it is not in quiet hours.
Micros EndOfQuiet(const QuietHours& quiet, Micros now);

/// The form in the tables: channels joined with commas.
std::string JoinChannels(const std::vector<std::string>& channels);
std::vector<std::string> SplitChannels(std::string_view text);

}  // namespace weir::notify
