#pragma once

#include <string>
#include <vector>

#include "slots/slot.h"

namespace weir::app {

/// One bar of a plot: neighbouring windows are merged until they fit.
struct PlotBar {
  slots::Millis start = 0;
  std::int64_t windows = 0;
  std::int64_t events = 0;
  std::int64_t fullest = 0;  ///< in one window
};

/// At most `count` bars over the time from the first to the last window; windows without a row
/// in between count as empty.
std::vector<PlotBar> MakeBars(const std::vector<slots::WindowLoad>& windows, std::size_t count);

/// For the terminal: a line per bar, as long as its fullest window's share of `max`.
std::string DrawText(const std::vector<PlotBar>& bars, std::int64_t max, std::size_t width);
/// A standalone picture, with the maximum as a line.
std::string DrawSvg(const std::vector<PlotBar>& bars, const slots::Config& config);

}  // namespace weir::app
