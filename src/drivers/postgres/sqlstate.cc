#include "drivers/postgres/sqlstate.h"

#include <algorithm>

namespace weir::postgres {
namespace {

/// Without the indent of lines that continue one.
void AppendLine(std::string& out, std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  if (line.empty()) return;
  if (!out.empty()) out += "; ";
  out += line;
}

}  // namespace

Code CodeOf(std::string_view sqlstate) noexcept {
  const std::string_view kind = sqlstate.substr(0, 2);
  if (sqlstate == "23505") return Code::kAlreadyExists;
  if (kind == "23") return Code::kFailedPrecondition;
  if (sqlstate == "57014") return Code::kDeadlineExceeded;
  // No state at all: libpq's own words about a broken connection.
  if (sqlstate.empty() || kind == "08" || kind == "53" || kind == "57" || kind == "58" ||
      kind == "40" || kind == "55" || kind == "25") {
    return Code::kUnavailable;
  }
  if (kind == "28" || sqlstate == "42501") return Code::kPermissionDenied;
  return Code::kInternal;
}

bool IsRetryable(std::string_view sqlstate) noexcept {
  return sqlstate == "40001" || sqlstate == "40P01";
}

std::string OneLine(const char* text) {
  std::string out;
  std::string_view rest = text == nullptr ? "" : text;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    AppendLine(out, line);
  }
  return out;
}

// "connection to … failed: FATAL:  28P01: password authentication failed for user …\nLOCATION:  …"
ConnectError ReadConnectError(std::string_view verbose) {
  constexpr std::size_t kStateSize = 5;
  const auto in_state = [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z'); };
  ConnectError error;
  while (!verbose.empty()) {
    std::string line(verbose.substr(0, verbose.find('\n')));
    verbose.remove_prefix(std::min(line.size() + 1, verbose.size()));
    if (line.starts_with("LOCATION:") || line.empty()) continue;
    const std::size_t colon = line.find(":  ");  // after the severity, in whatever language
    const std::size_t at = colon == std::string::npos ? line.size() : colon + 3;
    const std::string_view state = std::string_view(line).substr(at, kStateSize);
    if (state.size() == kStateSize && std::ranges::all_of(state, in_state) &&
        line.compare(at + kStateSize, 2, ": ") == 0) {
      error.sqlstate = state;
      line.erase(at, kStateSize + 2);
    }
    AppendLine(error.message, line);
  }
  return error;
}

}  // namespace weir::postgres
