#include "proxy/websocket.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace weir::proxy {
namespace {

std::string Frame(int opcode, std::size_t size, bool masked = true, bool end = true) {
  std::string frame(1, static_cast<char>((end ? 0x80 : 0) | opcode));
  const int mask = masked ? 0x80 : 0;
  if (size < 126) {
    frame += static_cast<char>(mask | static_cast<int>(size));
  } else if (size < 65536) {
    frame += static_cast<char>(mask | 126);
    frame += static_cast<char>(size >> 8U);
    frame += static_cast<char>(size & 255U);
  } else {
    frame += static_cast<char>(mask | 127);
    for (int shift = 56; shift >= 0; shift -= 8) frame += static_cast<char>(size >> shift & 255U);
  }
  if (masked) frame += "mask";
  return frame + std::string(size, '\x81');  // payload that looks like the start of a message
}

/// Scans in pieces of `size`, admitting every message; counts them.
int Count(std::string_view bytes, std::size_t size) {
  WebSocketScanner scanner;
  int messages = 0;
  while (!bytes.empty()) {
    std::string_view piece = bytes.substr(0, size);
    bytes.remove_prefix(piece.size());
    while (!piece.empty()) {
      const std::size_t taken = scanner.Take(piece);
      piece.remove_prefix(taken);
      if (scanner.failed()) return -1;
      if (piece.empty()) break;
      ++messages;
      scanner.Admit();
    }
  }
  return messages;
}

TEST(WebSocketScanner, CountsMessagesWhateverTheirLengthAndHowTheyAreCut) {
  std::string bytes;
  int expected = 0;
  for (const std::size_t size : {0U, 1U, 125U, 126U, 127U, 65535U, 65536U, 70000U}) {
    bytes += Frame(1, size) + Frame(2, size) + Frame(9, size % 126) + Frame(10, 0);
    expected += 4;
  }
  for (const std::size_t piece : {1U, 2U, 3U, 7U, 1000U, 8192U, 10'000'000U}) {
    EXPECT_EQ(Count(bytes, piece), expected) << piece;
  }
}

TEST(WebSocketScanner, CountsAMessageInPartsOnce) {
  EXPECT_EQ(Count(Frame(1, 5, true, false) + Frame(0, 5, true, false) + Frame(0, 5), 4), 1);
  EXPECT_EQ(Count(Frame(8, 2), 100), 0);  // closing is always allowed
}

TEST(WebSocketScanner, LetsNothingOfAMessagePassBeforeItIsAdmitted) {
  WebSocketScanner scanner;
  const std::string frame = Frame(1, 5);
  EXPECT_EQ(scanner.Take(frame), 0U);
  EXPECT_EQ(scanner.Take(frame), 0U);
  scanner.Admit();
  EXPECT_EQ(scanner.Take(frame + frame), frame.size());
  EXPECT_EQ(scanner.Take(frame), 0U);
}

TEST(WebSocketScanner, FailsOnALengthThatIsNone) {
  EXPECT_EQ(Count(std::string("\x81\xff\xff\xff\xff\xff\xff\xff\xff\xff", 10), 100), -1);
}

TEST(WebSocketScanner, FailsOnFramesThatAServerCouldTakeForAMessage) {
  const std::string part = Frame(1, 5, true, false);
  EXPECT_EQ(Count(Frame(0, 5), 100), -1) << "continues nothing";
  EXPECT_EQ(Count(Frame(1, 5) + Frame(0, 5), 3), -1) << "continues a message that has ended";
  EXPECT_EQ(Count(part + Frame(1, 5), 3), -1) << "a message within another";
  EXPECT_EQ(Count(part + Frame(9, 5) + Frame(0, 5), 3), 2) << "a ping may stand between";
  EXPECT_EQ(Count(Frame(8, 2) + Frame(1, 5), 100), -1) << "after the close";
  for (const int reserved : {3, 7, 11, 15}) EXPECT_EQ(Count(Frame(reserved, 5), 100), -1);
}

TEST(WebSocketScanner, FailsOnFramesWhoseEndIsInDoubt) {
  EXPECT_EQ(Count(Frame(9, 126), 100), -1) << "control frames are short";
  EXPECT_EQ(Count(Frame(10, 70000), 100), -1);
  EXPECT_EQ(Count(Frame(9, 5, true, false), 100), -1) << "and in one piece";
  EXPECT_EQ(Count(std::string("\x81\xfe\x00\x05mask12345", 13), 100), -1) << "5 has a shorter form";
  EXPECT_EQ(Count(std::string("\x81\xff\0\0\0\0\0\0\xff\xffmask", 14), 100), -1);
}

// A server that treats every frame of a client as masked, as required, would see the next frame
// begin four bytes later: messages in the payload of what counts as one.
TEST(WebSocketScanner, FailsOnFramesWithoutAMask) {
  for (const std::size_t size : {0U, 5U, 126U, 70000U}) {
    EXPECT_EQ(Count(Frame(1, size, false), 100), -1) << size;
  }
  EXPECT_EQ(Count(Frame(8, 2, false), 100), -1);
}

TEST(WebSocketScanner, TakesAnyBytesWithoutTrouble) {
  std::mt19937 random(14);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 200, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    const int whole = Count(bytes, bytes.size() + 1);
    EXPECT_EQ(Count(bytes, 1), whole);
    EXPECT_EQ(Count(bytes, 1 + random() % 7), whole);
  }
}

}  // namespace
}  // namespace weir::proxy
