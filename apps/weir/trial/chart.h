#pragma once

#include <string>
#include <vector>

namespace weir::app {

/// Lines over one axis of time.
struct Chart {
  struct Series {
    std::string name;
    std::string color;
    std::vector<double> values;  ///< evenly spaced
  };

  std::string title;
  std::string from;  ///< the label of the left end
  std::string to;
  std::vector<Series> series;
};

/// A text escaped for an SVG picture.
std::string EscapedForSvg(const std::string& text);

/// As an SVG picture. All texts are escaped.
std::string DrawChart(const Chart& chart);

/// The series one below the other as bars, for a terminal.
std::string PlotChart(const Chart& chart, std::size_t columns = 70, std::size_t rows = 8);

}  // namespace weir::app
