#include "protocol/resp/reply.h"

#include <array>
#include <cstring>

namespace weir::resp {
namespace {

constexpr std::array<char, 200> MakeDigitPairs() {
  std::array<char, 200> pairs{};
  for (std::size_t i = 0; i < 100; ++i) {
    pairs[2 * i] = static_cast<char>('0' + i / 10);
    pairs[2 * i + 1] = static_cast<char>('0' + i % 10);
  }
  return pairs;
}
constexpr std::array<char, 200> kDigitPairs = MakeDigitPairs();

}  // namespace

char* WriteInteger(char* at, std::int64_t value) noexcept {
  auto rest = static_cast<std::uint64_t>(value);
  if (value < 0) {
    *at++ = '-';
    rest = 0 - rest;
  }
  if (rest < 10) {
    *at = static_cast<char>('0' + rest);
    return at + 1;
  }
  char digits[kMaxIntegerChars];
  char* first = digits + sizeof digits;
  while (rest >= 100) {
    first -= 2;
    std::memcpy(first, &kDigitPairs[2 * (rest % 100)], 2);
    rest /= 100;
  }
  if (rest >= 10) {
    first -= 2;
    std::memcpy(first, &kDigitPairs[2 * rest], 2);
  } else {
    *--first = static_cast<char>('0' + rest);
  }
  const auto count = static_cast<std::size_t>(digits + sizeof digits - first);
  std::memcpy(at, first, count);
  return at + count;
}

void ReplyWriter::Error(std::string_view code, std::string_view message) {
  const std::size_t size = code.size() + message.size() + 4;
  char* const start = out_.Reserve(size);
  char* at = start;
  *at++ = '-';
  at = static_cast<char*>(std::memcpy(at, code.data(), code.size())) + code.size();
  *at++ = ' ';
  for (const char c : message) {
    *at++ = c == '\r' || c == '\n' ? ' ' : c;
  }
  *at++ = '\r';
  *at = '\n';
  out_.Commit(size);
}

void ReplyWriter::Integer(std::int64_t value) {
  char* const start = out_.Reserve(kMaxIntegerChars + 3);
  *start = ':';
  char* at = WriteInteger(start + 1, value);
  *at++ = '\r';
  *at++ = '\n';
  out_.Commit(static_cast<std::size_t>(at - start));
}

void ReplyWriter::Bulk(std::string_view bytes) {
  Head('$', bytes.size());
  out_.Append(bytes);
  out_.Append("\r\n");
}

void ReplyWriter::Map(std::size_t count) {
  if (protocol_ == Protocol::kResp3) {
    Head('%', count);
  } else {
    Head('*', 2 * count);
  }
}

void ReplyWriter::Verbatim(std::string_view text) {
  if (protocol_ != Protocol::kResp3) {
    Bulk(text);
    return;
  }
  Head('=', text.size() + 4);
  out_.Append("txt:");
  out_.Append(text);
  out_.Append("\r\n");
}

void ReplyWriter::Head(char kind, std::size_t count) {
  char* const start = out_.Reserve(kMaxIntegerChars + 3);
  *start = kind;
  char* at = WriteInteger(start + 1, static_cast<std::int64_t>(count));
  *at++ = '\r';
  *at++ = '\n';
  out_.Commit(static_cast<std::size_t>(at - start));
}

void ReplyWriter::Line(char kind, std::string_view text) {
  out_.Append({&kind, 1});
  out_.Append(text);
  out_.Append("\r\n");
}

}  // namespace weir::resp
