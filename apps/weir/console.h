#pragma once

// What commands print: texts from outside must not steer the terminal they are shown on.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace weir::app {

/// The text with everything visible that a terminal would obey or that would reorder what is read:
/// control characters, escapes, bidirectional and invisible characters and bytes that are not UTF-8
/// become \n, \x1b or \u{202e}. Texts of more than `columns` are cut and end in "…".
std::string Shown(std::string_view text, std::size_t columns = 60);

/// How many columns a text takes, counting each character of it as one.
std::size_t Columns(std::string_view text);

/// Rows under a head, in columns. Every cell goes through Shown. Not thread-safe.
class Table {
 public:
  /// A name that begins with '>' has its column aligned to the right.
  explicit Table(std::vector<std::string> head);
  void Add(const std::vector<std::string>& row);
  std::string ToString() const;

 private:
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

/// 1234567 → "1,234,567"
std::string Grouped(std::uint64_t number);

}  // namespace weir::app
