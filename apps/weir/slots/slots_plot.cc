#include "slots/slots_plot.h"

#include <algorithm>
#include <cstdio>

#include "trial/chart.h"

namespace weir::app {
namespace {

constexpr int kPlotWidth = 960;
constexpr int kPlotHeight = 240;
constexpr int kMargin = 40;

}  // namespace

std::vector<PlotBar> MakeBars(const std::vector<slots::WindowLoad>& windows, std::size_t count) {
  std::vector<PlotBar> bars;
  if (windows.empty() || count == 0) return bars;
  const slots::Millis size = windows.front().size;
  const slots::Millis begin = windows.front().start;
  const std::int64_t total = (windows.back().start - begin) / size + 1;
  const auto wanted = static_cast<std::int64_t>(count);
  const std::int64_t per_bar = (total + wanted - 1) / wanted;
  bars.resize(static_cast<std::size_t>((total + per_bar - 1) / per_bar));
  for (std::size_t i = 0; i < bars.size(); ++i) {
    bars[i].start = begin + static_cast<std::int64_t>(i) * per_bar * size;
    bars[i].windows = std::min(per_bar, total - static_cast<std::int64_t>(i) * per_bar);
  }
  for (const slots::WindowLoad& window : windows) {
    PlotBar& bar = bars[static_cast<std::size_t>((window.start - begin) / size / per_bar)];
    bar.events += window.used();
    bar.fullest = std::max(bar.fullest, window.used());
  }
  return bars;
}

std::string DrawText(const std::vector<PlotBar>& bars, std::int64_t max, std::size_t width) {
  std::string out;
  for (const PlotBar& bar : bars) {
    const auto filled = static_cast<std::size_t>(
        static_cast<double>(bar.fullest) / static_cast<double>(max) * static_cast<double>(width));
    std::string start = slots::FormatInstant(bar.start);
    start.resize(24, ' ');
    out += start + " |";
    for (std::size_t i = 0; i < width; ++i)
      out += i < filled ? "█" : bar.fullest > 0 && i == 0 ? "▏" : " ";
    out += "| " + std::to_string(bar.fullest) + "/" + std::to_string(max);
    if (bar.windows > 1) {
      out += "  (" + std::to_string(bar.windows) + " windows, " + std::to_string(bar.events) +
             " events)";
    }
    out += '\n';
  }
  return out;
}

std::string DrawSvg(const std::vector<PlotBar>& bars, const slots::Config& config) {
  std::int64_t top = config.max_per_window;
  for (const PlotBar& bar : bars) top = std::max(top, bar.fullest);
  const auto height = [top](std::int64_t value) {
    return static_cast<double>(value) / static_cast<double>(top) * kPlotHeight;
  };
  std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" +
                    std::to_string(kPlotWidth + 2 * kMargin) + "\" height=\"" +
                    std::to_string(kPlotHeight + 2 * kMargin) +
                    "\" font-family=\"sans-serif\" font-size=\"12\">\n<title>Load per window of " +
                    EscapedForSvg(config.name) + "</title>\n";
  char line[256];
  const double step =
      bars.empty() ? 0 : static_cast<double>(kPlotWidth) / static_cast<double>(bars.size());
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const double tall = height(bars[i].fullest);
    std::snprintf(line, sizeof(line),
                  "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"#2a6f97\"/>\n",
                  kMargin + static_cast<double>(i) * step, kMargin + kPlotHeight - tall,
                  std::max(step * 0.9, 0.5), tall);
    out += line;
  }
  const double cap = kMargin + kPlotHeight - height(config.max_per_window);
  std::snprintf(line, sizeof(line),
                "<line x1=\"%d\" x2=\"%d\" y1=\"%.2f\" y2=\"%.2f\" stroke=\"#c1121f\" "
                "stroke-dasharray=\"4\"/>\n<text x=\"%d\" y=\"%.2f\">maximum %lld</text>\n",
                kMargin, kMargin + kPlotWidth, cap, cap, kMargin, cap - 6,
                static_cast<long long>(config.max_per_window));
  out += line;
  if (!bars.empty()) {
    const int below = kMargin + kPlotHeight + 18;
    out += "<text x=\"" + std::to_string(kMargin) + "\" y=\"" + std::to_string(below) + "\">" +
           slots::FormatInstant(bars.front().start) + "</text>\n<text x=\"" +
           std::to_string(kMargin + kPlotWidth) + "\" y=\"" + std::to_string(below) +
           "\" text-anchor=\"end\">" + slots::FormatInstant(bars.back().start) + "</text>\n";
  }
  return out + "</svg>\n";
}

}  // namespace weir::app
