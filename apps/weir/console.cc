#include "console.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <cstdio>

#include "base/utf8.h"
#include "protocol/http/uri.h"

namespace weir::app {
namespace {

// A longer cell shifts only the rest of its own row, not that of all the others.
constexpr std::size_t kAligned = 100;

std::string Escape(const char* format, std::uint32_t code) {
  std::array<char, 24> text{};
  const int size = std::snprintf(text.data(), text.size(), format, code);
  return {text.data(), static_cast<std::size_t>(size)};
}

}  // namespace

std::string Shown(std::string_view text, std::size_t columns) {
  std::string out;
  std::size_t used = 0;
  while (!text.empty()) {
    const std::size_t length = Utf8SequenceLength(text);
    const std::string_view sequence = text.substr(0, std::max<std::size_t>(length, 1));
    text.remove_prefix(sequence.size());
    std::string piece(sequence);
    if (length == 0) {
      piece = Escape("\\x%02x", static_cast<unsigned char>(sequence.front()));
    } else if (const std::uint32_t code = CodePointOf(sequence); IsUnseen(code)) {
      piece = code == '\n' ? "\\n" : Escape(code < 0x80 ? "\\x%02x" : "\\u{%x}", code);
    }
    const std::size_t width = length > 1 && piece.size() == length ? 1 : piece.size();
    if (used + width > columns - (text.empty() ? 0 : 1)) return out + "…";
    out += piece;
    used += width;
  }
  return out;
}

std::string ShellWord(std::string_view text) {
  std::string shown = Shown(text);
  const bool plain = std::ranges::all_of(shown, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("-_.:/@,+%=").find(c) != std::string_view::npos;
  });
  if (plain && !shown.empty()) return shown;
  for (std::size_t at = shown.find('\''); at != std::string::npos; at = shown.find('\'', at + 4)) {
    shown.replace(at, 1, R"('\'')");
  }
  return "'" + shown + "'";
}

std::size_t Columns(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U;
  }));
}

Table::Table(std::vector<std::string> head, std::size_t widest) : widest_(widest) {
  for (std::string& name : head) {
    right_.push_back(name.starts_with('>'));
    if (right_.back()) name.erase(0, 1);
  }
  rows_.push_back(std::move(head));
}

void Table::Add(const std::vector<std::string>& row) {
  std::vector<std::string>& cells = rows_.emplace_back();
  for (const std::string& cell : row) cells.push_back(Shown(cell, widest_));
}

std::string Table::ToList() const { return ToString() + (rows_.size() > 1 ? "" : "(none)\n"); }

std::string Table::ToString() const {
  std::vector<std::size_t> widths(right_.size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::size_t columns = Columns(row[i]);
      if (columns <= kAligned) widths[i] = std::max(widths[i], columns);
    }
  }
  std::string out;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::size_t columns = Columns(row[i]);
      const std::string space(widths[i] - std::min(columns, widths[i]), ' ');
      line += right_[i] ? space + row[i] : row[i] + space;
      line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    // Empty names only give the number of columns.
    if (line.empty() && &row == &rows_.front()) continue;
    out += line + '\n';
  }
  return out;
}

std::string Counted(std::int64_t count, std::string_view noun) {
  return std::to_string(count).append(" ").append(noun).append(count == 1 ? "" : "s");
}

std::string Grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, 1, ',');
  return text;
}

}  // namespace weir::app
