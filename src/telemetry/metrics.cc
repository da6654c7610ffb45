#include "telemetry/metrics.h"

#include <fmt/format.h>

#include <utility>

namespace weir::telemetry {
namespace {

void AppendEscaped(std::string& out, std::string_view text, bool quote) {
  for (const char c : text) {
    switch (c) {
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '"':
        out += quote ? "\\\"" : "\"";
        break;
      default:
        out += c;
    }
  }
}

}  // namespace

void TextWriter::Family(std::string_view name, std::string_view help, std::string_view type) {
  name_ = name;
  out_.append("# HELP ").append(name).append(" ");
  AppendEscaped(out_, help, false);
  out_.append("\n# TYPE ").append(name).append(" ").append(type).append("\n");
}

void TextWriter::Line(std::string_view suffix, std::span<const Label> labels, std::string_view le,
                      std::string_view value) {
  out_.append(name_).append(suffix);
  char separator = '{';
  const auto add = [&](const Label& label) {
    out_ += separator;
    separator = ',';
    out_.append(label.name).append("=\"");
    AppendEscaped(out_, label.value, true);
    out_ += '"';
  };
  for (const Label& label : labels) add(label);
  if (!le.empty()) add({"le", le});
  if (separator == ',') out_ += '}';
  out_.append(" ").append(value).append("\n");
}

void TextWriter::Sample(std::uint64_t value, std::span<const Label> labels) {
  Line("", labels, "", fmt::format_int(value).c_str());
}

void TextWriter::Sample(double value, std::span<const Label> labels) {
  Line("", labels, "", fmt::format("{}", value));
}

void TextWriter::Samples(std::span<const LocalHistogram* const> parts,
                         std::span<const Label> labels) {
  std::uint64_t cumulative = 0;
  double sum = 0;
  for (const LocalHistogram* part : parts) sum += static_cast<double>(part->sum_nanos()) / 1e9;
  for (std::size_t i = 0; i <= kLatencyBounds.size(); ++i) {
    for (const LocalHistogram* part : parts) cumulative += part->bucket(i);
    const std::string bound = i == kLatencyBounds.size()
                                  ? "+Inf"
                                  : fmt::format("{}", static_cast<double>(kLatencyBounds[i]) / 1e9);
    Line("_bucket", labels, bound, fmt::format_int(cumulative).c_str());
  }
  Line("_sum", labels, "", fmt::format("{}", sum));
  Line("_count", labels, "", fmt::format_int(cumulative).c_str());
}

void TextWriter::Samples(std::span<const double> bounds, std::span<const std::uint64_t> counts,
                         double sum, std::span<const Label> labels) {
  std::uint64_t cumulative = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    cumulative += counts[i];
    const std::string bound = i < bounds.size() ? fmt::format("{}", bounds[i]) : "+Inf";
    Line("_bucket", labels, bound, fmt::format_int(cumulative).c_str());
  }
  Line("_sum", labels, "", fmt::format("{}", sum));
  Line("_count", labels, "", fmt::format_int(cumulative).c_str());
}

void Registry::Add(Collector collector) {
  const std::lock_guard lock(mutex_);
  collectors_.push_back(std::move(collector));
}

std::string Registry::Render() const {
  std::string out;
  TextWriter writer(out);
  const std::lock_guard lock(mutex_);
  for (const Collector& collector : collectors_) collector(writer);
  return out;
}

}  // namespace weir::telemetry
