#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::test::h2 {

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

enum Type : std::uint8_t {
  kData = 0,
  kHeaders = 1,
  kRstStream = 3,
  kSettings = 4,
  kPing = 6,
  kContinuation = 9
};
enum Flag : std::uint8_t { kNone = 0, kEndStream = 1, kAck = 1, kEndHeaders = 4 };

/// An HTTP/2 frame in its wire format.
inline std::string Frame(Type type, unsigned flags, std::uint32_t stream,
                         std::string_view payload = {}) {
  std::string frame;
  for (const unsigned shift : {16U, 8U, 0U}) {
    frame.push_back(static_cast<char>(payload.size() >> shift));
  }
  frame.push_back(static_cast<char>(type));
  frame.push_back(static_cast<char>(flags));
  for (const unsigned shift : {24U, 16U, 8U, 0U}) {
    frame.push_back(static_cast<char>(stream >> shift));
  }
  return frame.append(payload);
}

/// The first bytes that a client sends.
inline std::string Hello() { return std::string(kPreface) + Frame(kSettings, kNone, 0); }

/// A header block without compression. Names and values of up to 126 bytes.
inline std::string Field(std::string_view name, std::string_view value) {
  std::string field(1, '\0');
  field.push_back(static_cast<char>(name.size()));
  field.append(name);
  field.push_back(static_cast<char>(value.size()));
  return field.append(value);
}

/// The head of a gRPC call.
inline std::string CallHead(std::string_view path) {
  return Field(":method", "POST") + Field(":scheme", "http") + Field(":path", path) +
         Field(":authority", "x") + Field("te", "trailers") +
         Field("content-type", "application/grpc");
}

}  // namespace weir::test::h2
