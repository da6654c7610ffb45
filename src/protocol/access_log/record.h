#pragma once

// Lines of access logs → who requested what, when. No files, so it can be fuzzed.

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "weir/clock.h"

namespace weir::access_log {

enum class Format : std::uint8_t {
  kAuto,      ///< detected from the first line that one of the others can read
  kCombined,  ///< nginx and Apache "combined" (and "common", which lacks the last two fields)
  kJson,      ///< an object per line
  kEnvoy,     ///< Envoy's default format, and Istio's
};

std::optional<Format> ParseFormat(std::string_view name) noexcept;
std::string_view FormatName(Format format) noexcept;

/// One request. Views into the line, or into the parser until its next line.
struct Record {
  Nanos at = 0;
  std::string_view ip;
  std::string_view user;    ///< empty: unknown
  std::string_view method;  ///< GET
  std::string_view route;   ///< the path without its query
  std::string_view host;    ///< empty: unknown
};

/// Longer lines are malformed.
inline constexpr std::size_t kMaxLine = 65'536;

/// Reads lines of one format.
///
/// Not thread-safe.
class LineParser {
 public:
  explicit LineParser(Format format);
  ~LineParser();
  LineParser(const LineParser&) = delete;
  LineParser& operator=(const LineParser&) = delete;

  /// Nothing if the line is malformed. `line` has no newline.
  std::optional<Record> Parse(std::string_view line);
  /// The format, once known.
  Format format() const noexcept { return format_; }

 private:
  class Json;
  std::optional<Record> ParseAs(Format format, std::string_view line);

  Format format_;
  std::unique_ptr<Json> json_;
};

}  // namespace weir::access_log
