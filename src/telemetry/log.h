#pragma once

// Structured log lines on standard error, as JSON or for the console. A thread that logs formats
// the line and appends it to a bounded buffer; one background thread writes. When the reader of
// standard error is slower than logging, lines are dropped and counted: logging never delays a
// check.

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <variant>

namespace weir::telemetry {

enum class Level : std::uint8_t { kDebug, kInfo, kWarn, kError, kOff };
enum class LogFormat : std::uint8_t { kConsole, kJson };

struct Field {
  std::string_view name;
  std::variant<std::string_view, std::int64_t, std::uint64_t, double, bool> value;
};

struct LogOptions {
  Level level = Level::kInfo;
  LogFormat format = LogFormat::kConsole;
  int fd = 2;
};

/// Call before the first thread starts. Until then, lines go to standard error in console form.
void ConfigureLog(const LogOptions& options);

/// Cheap: check it before building fields for a debug line.
bool LogEnabled(Level level) noexcept;

/// Thread-safe. Never put secrets (keys of the admin API, passwords in URLs) into a field.
void Log(Level level, std::string_view message, std::initializer_list<Field> fields = {});

/// Returns when everything logged so far has been written, or after five seconds if it is not being
/// read, so that a program can always exit. Thread-safe.
void FlushLog();

/// Lets at most `per_second` lines through, for lines that clients can cause at will.
///
/// Thread safety: one per thread.
class LogThrottle {
 public:
  explicit LogThrottle(std::uint32_t per_second) : per_second_(per_second) {}
  /// True if a line may be logged now; `now_seconds` is any clock that counts seconds.
  bool Allow(std::int64_t now_seconds) noexcept {
    if (now_seconds != second_) {
      second_ = now_seconds;
      used_ = 0;
    }
    return used_++ < per_second_;
  }

 private:
  std::uint32_t per_second_;
  std::uint32_t used_ = 0;
  std::int64_t second_ = 0;
};

}  // namespace weir::telemetry
