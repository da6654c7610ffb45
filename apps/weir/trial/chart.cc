#include "trial/chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace weir::app {
namespace {

constexpr double kWidth = 900;
constexpr double kHeight = 320;
constexpr double kLeft = 70;
constexpr double kTop = 50;
constexpr double kBottom = 40;
constexpr double kRight = 20;

std::string Number(double value) {
  std::array<char, 48> text{};
  const int size = std::snprintf(text.data(), text.size(), value < 10 ? "%.1f" : "%.0f", value);
  return {text.data(), static_cast<std::size_t>(size)};
}

double Highest(const Chart& chart) {
  double most = 0;
  for (const Chart::Series& series : chart.series) {
    for (const double value : series.values) most = std::max(most, value);
  }
  return most > 0 ? most : 1;
}

std::string Label(double x, double y, const char* anchor, const std::string& text) {
  return "<text x=\"" + Number(x) + "\" y=\"" + Number(y) + "\" text-anchor=\"" + anchor + "\">" +
         EscapedForSvg(text) + "</text>\n";
}

std::string Line(const Chart::Series& series, double most) {
  std::string points;
  const std::size_t count = series.values.size();
  for (std::size_t i = 0; i < count; ++i) {
    const double part = count == 1 ? 0.5 : static_cast<double>(i) / static_cast<double>(count - 1);
    const double x = kLeft + part * (kWidth - kLeft - kRight);
    const double y = kHeight - kBottom - series.values[i] / most * (kHeight - kTop - kBottom);
    points += Number(x) + "," + Number(y) + " ";
  }
  return "<polyline fill=\"none\" stroke-width=\"1.5\" stroke=\"" + series.color + "\" points=\"" +
         points + "\"/>\n";
}

}  // namespace

std::string EscapedForSvg(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string DrawChart(const Chart& chart) {
  const double most = Highest(chart);
  std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + Number(kWidth) +
                    " " + Number(kHeight) +
                    "\" font-family=\"sans-serif\" font-size=\"12\" role=\"img\">\n<title>" +
                    EscapedForSvg(chart.title) +
                    "</title>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
  out += Label(kLeft, 20, "start", chart.title);
  for (int step = 0; step <= 4; ++step) {
    const double part = step / 4.0;
    const double y = kHeight - kBottom - part * (kHeight - kTop - kBottom);
    out += "<line stroke=\"#ddd\" x1=\"" + Number(kLeft) + "\" x2=\"" + Number(kWidth - kRight) +
           "\" y1=\"" + Number(y) + "\" y2=\"" + Number(y) + "\"/>\n";
    out += Label(kLeft - 6, y + 4, "end", Number(most * part));
  }
  out += Label(kLeft, kHeight - 12, "start", chart.from);
  out += Label(kWidth - kRight, kHeight - 12, "end", chart.to);
  double x = kLeft;
  for (const Chart::Series& series : chart.series) {
    out += "<rect x=\"" + Number(x) + "\" y=\"30\" width=\"10\" height=\"10\" fill=\"" +
           series.color + "\"/>\n";
    out += Label(x + 14, 40, "start", series.name);
    x += 30 + 8 * static_cast<double>(series.name.size());
    out += Line(series, most);
  }
  return out + "</svg>\n";
}

std::string PlotChart(const Chart& chart, std::size_t columns, std::size_t rows) {
  constexpr std::array<const char*, 9> kBars = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const double most = Highest(chart);
  std::string out;
  for (const Chart::Series& series : chart.series) {
    const std::size_t count = series.values.size();
    if (count == 0) continue;
    const std::size_t width = std::min(columns, count);
    std::vector<double> bars(width, 0);
    for (std::size_t i = 0; i < count; ++i) {
      double& bar = bars[i * width / count];
      bar = std::max(bar, series.values[i]);
    }
    out += series.name + " (at most " +
           Number(*std::max_element(series.values.begin(), series.values.end())) + ")\n";
    for (std::size_t row = rows; row-- > 0;) {
      for (const double bar : bars) {
        const double eighths = bar / most * static_cast<double>(rows * 8);
        const double here = std::clamp(eighths - static_cast<double>(row * 8), 0.0, 8.0);
        out += kBars[static_cast<std::size_t>(std::lround(here))];
      }
      out += '\n';
    }
  }
  return out;
}

}  // namespace weir::app
