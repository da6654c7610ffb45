#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace weir::redis {

/// A command with its arguments in wire format, except the leading count, which is known at the
/// end.
///
/// Not thread-safe, like any value.
class Command {
 public:
  Command() = default;
  Command(std::initializer_list<std::string_view> words) {
    for (const std::string_view word : words) Add(word);
  }

  Command& Add(std::string_view argument) {
    Begin(argument.size());
    bytes_.append(argument).append("\r\n");
    return *this;
  }
  Command& Add(std::int64_t number) {
    char digits[20];
    const char* end = std::to_chars(digits, digits + sizeof digits, number).ptr;
    return Add(std::string_view(digits, static_cast<std::size_t>(end - digits)));
  }
  /// Appends the arguments of `tail`.
  Command& Append(const Command& tail) {
    bytes_ += tail.bytes_;
    count_ += tail.count_;
    return *this;
  }

  void Reserve(std::size_t bytes) { bytes_.reserve(bytes); }
  std::size_t count() const noexcept { return count_; }
  std::size_t size() const noexcept { return bytes_.size(); }

  void AppendTo(std::string& out) const {
    AppendHead('*', count_, out);
    out += bytes_;
  }

 private:
  static void AppendHead(char kind, std::size_t number, std::string& out) {
    char head[24];
    head[0] = kind;
    char* end = std::to_chars(head + 1, head + sizeof head - 2, number).ptr;
    *end++ = '\r';
    *end++ = '\n';
    out.append(head, static_cast<std::size_t>(end - head));
  }
  void Begin(std::size_t size) {
    AppendHead('$', size, bytes_);
    ++count_;
  }

  std::string bytes_;
  std::size_t count_ = 0;
};

}  // namespace weir::redis
