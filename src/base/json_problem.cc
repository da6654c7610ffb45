#include "base/json_problem.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <system_error>
#include <utility>
#include <vector>

#include "base/utf8.h"

namespace weir {
namespace {

constexpr std::size_t kMostShown = 20;
constexpr std::uint32_t kNoUnit = 0x10000;

bool IsDigit(char c) noexcept { return c >= '0' && c <= '9'; }

/// Scans a text up to its first error. Each step returns what is wrong at `at_`, or nothing.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::size_t at() const noexcept { return at_; }

  std::string Scan() {
    std::string wrong = Value();
    while (wrong.empty() && (wants_value_ || !open_.empty())) {
      wrong = wants_value_ ? Value() : AfterValue();
    }
    if (!wrong.empty()) return wrong;
    return Peek() == '\0' && at_ == text_.size() ? std::string() : "nothing may follow the end";
  }

 private:
  /// The next character that is not blank; 0 at the end.
  char Peek() noexcept {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != text_.npos) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool Take(char c) noexcept {
    if (Peek() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
  }

  std::string Expected(std::string_view what) const {
    if (at_ < text_.size()) return std::string("expected ").append(what);
    return std::string("the text ends here; expected ").append(what);
  }

  std::string Value() {
    wants_value_ = false;
    const char c = Peek();
    if (c == '{') return Open('}');
    if (c == '[') return Open(']');
    if (c == '"') return String();
    if (c == '-' || IsDigit(c)) return Number();
    if (c == '\'') return "strings need double quotes";
    for (const std::string_view word : {"true", "false", "null"}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return {};
    }
    return Expected("a value: a string in double quotes, a number, true, false, null, { or [");
  }

  std::string Open(char close) {
    ++at_;
    if (Take(close)) return {};
    open_.push_back(close);
    if (close == '}') return Name();
    wants_value_ = true;
    return {};
  }

  std::string Name() {
    if (Peek() != '"') return Expected("a name in double quotes");
    std::string wrong = String();
    if (!wrong.empty()) return wrong;
    if (!Take(':')) return Expected("':' after the name");
    wants_value_ = true;
    return {};
  }

  std::string AfterValue() {
    const char close = open_.back();
    if (Take(close)) {
      open_.pop_back();
      return {};
    }
    if (!Take(',')) return Expected(close == '}' ? "',' or '}'" : "',' or ']'");
    if (Peek() == close && at_ < text_.size()) return "nothing follows the comma before it";
    if (close == '}') return Name();
    wants_value_ = true;
    return {};
  }

  std::string String() {
    const std::size_t begin = at_++;
    while (at_ < text_.size() && text_[at_] != '"') {
      const auto byte = static_cast<unsigned char>(text_[at_]);
      if (byte < ' ') return R"(control characters and line breaks in strings need \, as in \n)";
      const std::size_t length = Utf8SequenceLength(text_.substr(at_));
      if (length == 0) return "the text is not UTF-8";
      if (byte != '\\') {
        at_ += length;
      } else if (std::string wrong = Escape(); !wrong.empty()) {
        return wrong;
      }
    }
    if (at_ < text_.size()) {
      ++at_;
      return {};
    }
    at_ = begin;
    return "the string that begins here has no end";
  }

  /// Scans one escape, whose backslash is at `at_`.
  std::string Escape() {
    const char kind = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
    if (kind == 'u' && Unit(at_) != kNoUnit) return CodePoint();
    if (kind == '\0' || std::string_view("\"\\/bfnrt").find(kind) == std::string_view::npos) {
      return R"(not an escape that JSON knows; write \\ for \)";
    }
    at_ += 2;
    return {};
  }

  /// The digits of the escape \uXXXX at `at`; kNoUnit if there is none.
  std::uint32_t Unit(std::size_t at) const noexcept {
    std::uint32_t unit = 0;
    if (at + 6 > text_.size() || !text_.substr(at).starts_with("\\u")) return kNoUnit;
    const char* const digits = text_.data() + at + 2;
    const auto read = std::from_chars(digits, digits + 4, unit, 16);
    return read.ec == std::errc() && read.ptr == digits + 4 ? unit : kNoUnit;
  }

  /// Scans \uXXXX; a surrogate is valid only as one half of a pair.
  std::string CodePoint() {
    const std::uint32_t unit = Unit(at_);
    if (unit >= 0xD800 && unit < 0xE000) {
      const std::uint32_t low = Unit(at_ + 6);
      if (unit >= 0xDC00 || low < 0xDC00 || low >= 0xE000) {
        return std::string(text_.substr(at_, 6)) +
               R"( is half of a surrogate pair; write both halves, as in \ud83d\ude00)";
      }
      at_ += 6;
    }
    at_ += 6;
    return {};
  }

  bool Digits() noexcept {
    const std::size_t begin = at_;
    while (at_ < text_.size() && IsDigit(text_[at_])) ++at_;
    return at_ > begin;
  }

  std::string Number() {
    const std::size_t begin = at_;
    if (text_[at_] == '-') ++at_;
    const std::size_t first = at_;
    bool good = Digits() && (text_[first] != '0' || at_ == first + 1);
    if (good && at_ < text_.size() && text_[at_] == '.') {
      ++at_;
      good = Digits();
    }
    if (good && at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
      ++at_;
      if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) ++at_;
      good = Digits();
    }
    const std::size_t end = std::min(text_.find_first_of(" \t\r\n,]}", begin), text_.size());
    if (good && at_ == end) return {};
    at_ = begin;
    std::string shown;
    for (const char c : text_.substr(begin, std::min(end - begin, kMostShown))) {
      shown += c > ' ' && c <= '~' ? c : '?';
    }
    return "'" + shown + "' is not a number";
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<char> open_;  ///< what closes the arrays and objects around us
  bool wants_value_ = false;
};

}  // namespace

std::optional<JsonFault> FindJsonFault(std::string_view text) {
  Scanner scanner(text);
  std::string wrong = scanner.Scan();
  if (wrong.empty()) return std::nullopt;
  const std::string_view before = text.substr(0, scanner.at());
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const std::string_view line = before.substr(before.rfind('\n') + 1);  // npos + 1 is 0
  // Bytes that continue a character are not counted.
  const auto column = std::count_if(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  });
  return JsonFault{static_cast<int>(lines) + 1, static_cast<int>(column) + 1, std::move(wrong)};
}

std::string JsonProblem(std::string_view text) {
  const std::optional<JsonFault> fault = FindJsonFault(text);
  if (!fault) return {};
  return "line " + std::to_string(fault->line) + ", column " + std::to_string(fault->column) +
         ": " + fault->message;
}

}  // namespace weir
