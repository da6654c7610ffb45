#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace weir {

/// Walks the pairs of a query string: `key=value`, undecoded; a part without '=' has an empty
/// value, empty parts are skipped. Not thread-safe, like any value.
class QueryReader {
 public:
  explicit QueryReader(std::string_view query) : rest_(query) {}

  struct Pair {
    std::string_view key;
    std::string_view value;
    std::string_view text;  ///< both, as written
  };

  std::optional<Pair> Next() noexcept {
    while (!rest_.empty()) {
      const std::size_t end = rest_.find('&');
      const std::string_view part = rest_.substr(0, end);
      rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end + 1);
      if (part.empty()) continue;
      const std::size_t equals = part.find('=');
      if (equals == std::string_view::npos) return Pair{part, {}, part};
      return Pair{part.substr(0, equals), part.substr(equals + 1), part};
    }
    return std::nullopt;
  }

 private:
  std::string_view rest_;
};

}  // namespace weir
