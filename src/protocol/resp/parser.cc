#include "protocol/resp/parser.h"

#include <cstring>

#include "base/percent.h"

namespace weir::resp {
namespace {

// Digits of the largest length that any limit could allow; a longer number is refused unread.
constexpr std::size_t kMaxLengthDigits = 10;

bool IsSpace(char c) noexcept {
  return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

bool IsDigit(char c) noexcept { return c >= '0' && c <= '9'; }

// Decodes one escape of a double-quoted word, `text[0]` being the backslash. Returns how many
// characters it took.
std::size_t Unescape(std::string_view text, std::string* out) {
  if (text.size() >= 4 && text[1] == 'x' && HexDigit(text[2]) >= 0 && HexDigit(text[3]) >= 0) {
    out->push_back(static_cast<char>(HexDigit(text[2]) * 16 + HexDigit(text[3])));
    return 4;
  }
  if (text.size() < 2) {
    return 0;
  }
  switch (text[1]) {
    case 'n':
      out->push_back('\n');
      break;
    case 'r':
      out->push_back('\r');
      break;
    case 't':
      out->push_back('\t');
      break;
    case 'b':
      out->push_back('\b');
      break;
    case 'a':
      out->push_back('\a');
      break;
    default:
      out->push_back(text[1]);
  }
  return 2;
}

// Decodes the quoted word at the front of `text`, up to its closing quote. Returns how many
// characters it took; 0 if the quote is not closed or is directly followed by something.
std::size_t Unquote(std::string_view text, std::string* out) {
  const char quote = text[0];
  std::size_t i = 1;
  while (i < text.size() && text[i] != quote) {
    if (text[i] == '\\' && quote == '"') {
      const std::size_t taken = Unescape(text.substr(i), out);
      if (taken == 0) return 0;
      i += taken;
    } else if (text[i] == '\\' && i + 1 < text.size() && text[i + 1] == '\'') {
      out->push_back('\'');
      i += 2;
    } else {
      out->push_back(text[i++]);
    }
  }
  if (i >= text.size()) return 0;
  ++i;
  return i == text.size() || IsSpace(text[i]) ? i : 0;
}

}  // namespace

Parser::Outcome Parser::Next(std::string_view input) {
  if (complete_) {
    Forget();
  }
  consumed_ = 0;
  for (;;) {
    const std::string_view rest = input.substr(consumed_);
    if (rest.empty()) {
      return Outcome::kIncomplete;
    }
    const Step step = rest[0] == '*' ? ReadArray(rest) : ReadInline(rest);
    if (step == Step::kMore) {
      if (rest.size() > limits_.max_command) {
        Fail("command too large");
        return Outcome::kError;
      }
      return Outcome::kIncomplete;
    }
    if (step == Step::kBad) {
      return Outcome::kError;
    }
    consumed_ += position_;
    if (count_ > 0) {
      complete_ = true;
      return Outcome::kCommand;
    }
    Forget();  // an empty array or an empty line gets no reply
  }
}

// The usual bulk string: shorter than 100 bytes, and fully received. Anything else is
// left to ReadBulk.
bool Parser::ReadShortBulk(std::string_view input) noexcept {
  constexpr std::size_t kLeast = 6;  // "$0\r\n\r\n"
  const std::size_t left = input.size() - position_;
  if (left < kLeast) return false;
  const char* const start = input.data() + position_;
  const char* at = start + 1;
  if (*start != '$' || !IsDigit(*at)) return false;
  auto size = static_cast<std::size_t>(*at++ - '0');
  if (IsDigit(*at)) size = 10 * size + static_cast<std::size_t>(*at++ - '0');
  if (at[0] != '\r' || at[1] != '\n') return false;
  at += 2;
  const auto head = static_cast<std::size_t>(at - start);
  if (left - head < size + 2 || at[size] != '\r' || at[size + 1] != '\n') return false;
  const std::size_t begin = position_ + head;
  if (size > limits_.max_bulk || begin + size + 2 > limits_.max_command) return false;
  places_[count_++] = {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(size)};
  position_ = begin + size + 2;
  return true;
}

Parser::Step Parser::ReadArray(std::string_view input) {
  base_ = input.data();
  if (expected_ == 0) {
    const Step step = ReadCount(input);
    if (step != Step::kDone || expected_ == 0) {
      return step;
    }
  }
  while (count_ < expected_) {
    if (ReadShortBulk(input)) continue;
    const Step step = ReadBulk(input);
    if (step != Step::kDone) {
      return step;
    }
  }
  return position_ <= limits_.max_command ? Step::kDone : Fail("command too large");
}

Parser::Step Parser::ReadCount(std::string_view input) {
  std::int64_t count = 0;
  const Step step = ReadLength(input, "multibulk", &count);
  if (step != Step::kDone) {
    return step;
  }
  if (count > static_cast<std::int64_t>(limits_.max_arguments)) {
    return Fail("too many arguments");
  }
  expected_ = count < 0 ? 0 : static_cast<std::size_t>(count);
  if (places_.size() < expected_) {
    places_.resize(expected_);
  }
  return Step::kDone;
}

Parser::Step Parser::ReadBulk(std::string_view input) {
  const std::size_t start = position_;
  if (start == input.size()) {
    return Step::kMore;
  }
  if (input[start] != '$') {
    return Fail(std::string("expected '$', got '") + input[start] + "'");
  }
  std::int64_t length = 0;
  const Step step = ReadLength(input, "bulk", &length);
  if (step != Step::kDone) {
    return step;
  }
  if (length < 0 || length > static_cast<std::int64_t>(limits_.max_bulk)) {
    return Fail("invalid bulk length");
  }
  const auto size = static_cast<std::size_t>(length);
  if (position_ + size + 2 > limits_.max_command) {
    return Fail("command too large");
  }
  if (input.size() - position_ < size + 2) {
    position_ = start;  // the few bytes of the length are read again when the rest is here
    return Step::kMore;
  }
  if (input[position_ + size] != '\r' || input[position_ + size + 1] != '\n') {
    return Fail("expected CRLF after a bulk string");
  }
  places_[count_++] = {static_cast<std::uint32_t>(position_), static_cast<std::uint32_t>(size)};
  position_ += size + 2;
  return Step::kDone;
}

// Reads "<sign><number>\r\n" at position_ and moves past it, if all of it has arrived.
Parser::Step Parser::ReadLength(std::string_view input, const char* name, std::int64_t* length) {
  std::size_t i = position_ + 1;
  bool negative = false;
  if (i < input.size() && input[i] == '-') {
    negative = true;
    ++i;
  }
  const std::size_t digits = i;
  std::int64_t value = 0;
  while (i < input.size() && IsDigit(input[i])) {
    if (i - digits == kMaxLengthDigits) {
      return Fail(std::string("invalid ") + name + " length");
    }
    value = value * 10 + (input[i++] - '0');
  }
  if (i >= input.size()) {
    return Step::kMore;
  }
  if (i == digits || input[i] != '\r') {
    return Fail(std::string("invalid ") + name + " length");
  }
  if (i + 1 >= input.size()) {
    return Step::kMore;
  }
  if (input[i + 1] != '\n') {
    return Fail(std::string("invalid ") + name + " length");
  }
  *length = negative ? -value : value;
  position_ = i + 2;
  return Step::kDone;
}

Parser::Step Parser::ReadInline(std::string_view input) {
  const std::size_t newline = input.find('\n', position_);
  if (newline == std::string_view::npos) {
    position_ = input.size();  // no newline up to here: continue from here next time
    return input.size() > limits_.max_inline ? Fail("too big inline request") : Step::kMore;
  }
  if (newline > limits_.max_inline) {
    return Fail("too big inline request");
  }
  position_ = newline + 1;
  return SplitInline(input.substr(0, newline));
}

Parser::Step Parser::SplitInline(std::string_view line) {
  words_.clear();
  std::size_t i = 0;
  for (;;) {
    while (i < line.size() && IsSpace(line[i])) ++i;
    if (i == line.size()) break;
    const std::size_t begin = words_.size();
    while (i < line.size() && !IsSpace(line[i])) {
      if (line[i] == '"' || line[i] == '\'') {
        const std::size_t taken = Unquote(line.substr(i), &words_);
        if (taken == 0) return Fail("unbalanced quotes in request");
        i += taken;
      } else {
        words_.push_back(line[i++]);
      }
    }
    if (count_ == limits_.max_arguments) return Fail("too many arguments");
    if (places_.size() <= count_) places_.resize(count_ + 8);
    places_[count_++] = {static_cast<std::uint32_t>(begin),
                         static_cast<std::uint32_t>(words_.size() - begin)};
  }
  base_ = words_.data();
  return Step::kDone;
}

Parser::Step Parser::Fail(std::string reason) {
  error_ = "Protocol error: " + std::move(reason);
  return Step::kBad;
}

void Parser::Forget() noexcept {
  count_ = 0;
  expected_ = 0;
  position_ = 0;
  complete_ = false;
}

}  // namespace weir::resp
