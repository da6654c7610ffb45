#pragma once

// Replies of the Redis protocol, appended to a buffer. RESP3 kinds (map, null, boolean) fall back
// to what RESP2 has, so a command writes its reply once.

#include <cstdint>
#include <string_view>

#include "protocol/resp/buffer.h"

namespace weir::resp {

enum class Protocol : std::uint8_t { kResp2 = 2, kResp3 = 3 };

/// The most characters WriteInteger writes: a sign and 19 digits.
inline constexpr std::size_t kMaxIntegerChars = 20;

/// Writes `value` in decimal to `at` and returns the end.
char* WriteInteger(char* at, std::int64_t value) noexcept;

/// Appends replies to a buffer in the connection's protocol. Not thread-safe; cheap to make.
class ReplyWriter {
 public:
  ReplyWriter(Buffer& out, Protocol protocol) noexcept : out_(out), protocol_(protocol) {}

  /// For everything written from here on.
  void SetProtocol(Protocol protocol) noexcept { protocol_ = protocol; }

  void Ok() { out_.Append("+OK\r\n"); }
  /// `text` must not contain a line break.
  void Simple(std::string_view text) { Line('+', text); }
  /// "-<code> <message>"; line breaks in the message become spaces, since they would end the reply.
  void Error(std::string_view code, std::string_view message);
  void Integer(std::int64_t value);
  void Bulk(std::string_view bytes);
  void Null() { out_.Append(protocol_ == Protocol::kResp3 ? "_\r\n" : "$-1\r\n"); }
  /// The head of an array of `count` replies.
  void Array(std::size_t count) { Head('*', count); }
  /// The head of a map of `count` pairs; in RESP2 an array of twice as many.
  void Map(std::size_t count);
  /// Text for people: a verbatim string in RESP3.
  void Verbatim(std::string_view text);

 private:
  void Head(char kind, std::size_t count);
  void Line(char kind, std::string_view text);

  Buffer& out_;
  Protocol protocol_;
};

}  // namespace weir::resp
