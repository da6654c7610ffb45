#pragma once

// What commands print: texts from outside must not control the terminal they are shown on.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir::app {

/// Enough columns for the longest name of a bucket (policy/keys.h), with each byte as \x1b.
inline constexpr std::size_t kWhole = std::size_t{4} * 4096;

/// The text, with everything made visible that controls a terminal or reorders what is read:
/// control characters, escapes, bidirectional and invisible characters and bytes that are not UTF-8
/// become \n, \x1b or \u{202e}. Texts of more than `columns` are cut and end in "…".
std::string Shown(std::string_view text, std::size_t columns = kWhole);

/// The text as one word of a shell's command line, in quotes if it needs them; see Shown.
std::string ShellWord(std::string_view text);

/// How many columns a text takes, counting each character of it as one.
std::size_t Columns(std::string_view text);

/// Rows under a head, in columns. Every cell goes through Shown. A cell is only cut if `widest`
/// says so: an incomplete name is of no use to another command. Not thread-safe.
class Table {
 public:
  /// A name that begins with '>' has its column aligned to the right.
  explicit Table(std::vector<std::string> head, std::size_t widest = kWhole);
  void Add(const std::vector<std::string>& row);
  std::string ToString() const;
  /// As a list, which says so if it is empty.
  std::string ToList() const;

 private:
  const std::size_t widest_;
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

/// "1 event", "2 events"
std::string Counted(std::int64_t count, std::string_view noun);

/// 1234567 → "1,234,567"
std::string Grouped(std::uint64_t number);

}  // namespace weir::app
