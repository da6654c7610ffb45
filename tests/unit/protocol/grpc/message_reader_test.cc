#include "protocol/grpc/message_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir::grpc {
namespace {

using Step = MessageReader::Step;

std::string Framed(const std::string& message) {
  std::string framed(1, '\0');
  for (int shift = 24; shift >= 0; shift -= 8) {
    framed.push_back(static_cast<char>((message.size() >> static_cast<unsigned>(shift)) & 0xFFU));
  }
  return framed + message;
}

std::vector<std::string> ReadInPieces(const std::string& bytes, std::size_t piece) {
  MessageReader reader;
  std::vector<std::string> messages;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    std::string_view rest = std::string_view(bytes).substr(at, piece);
    while (reader.Next(rest, 1000) == Step::kMessage) messages.emplace_back(reader.message());
    EXPECT_TRUE(rest.empty());
  }
  EXPECT_FALSE(reader.midway());
  return messages;
}

TEST(MessageReader, GivesTheSameMessagesHoweverTheBytesAreCut) {
  const std::vector<std::string> expected = {"first", "", std::string(300, 'x'), "last"};
  std::string bytes;
  for (const std::string& message : expected) bytes += Framed(message);
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    EXPECT_EQ(ReadInPieces(bytes, piece), expected) << "pieces of " << piece;
  }
}

TEST(MessageReader, RefusesALengthOverTheLimitBeforeBufferingAnything) {
  MessageReader reader;
  std::string_view bytes("\0\0\0\0\x0B", 5);  // announces 11 bytes
  EXPECT_EQ(reader.Next(bytes, 10), Step::kTooLarge);
  EXPECT_EQ(reader.buffered(), 0U);
}

TEST(MessageReader, PassesOverWhatIsTooLargeHoweverTheBytesAreCut) {
  const std::string bytes = Framed("first") + Framed(std::string(300, 'x')) +
                            Framed(std::string(200, 'y')) + Framed("last");
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    MessageReader reader;
    std::vector<std::string> messages;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      std::string_view rest = std::string_view(bytes).substr(at, piece);
      for (Step step = Step::kMessage; step != Step::kNeedMore;) {
        step = reader.Next(rest, 100);
        if (step == Step::kMessage) messages.emplace_back(reader.message());
        if (step == Step::kTooLarge) reader.SkipLarge(rest);
        EXPECT_LE(reader.buffered(), 100U);
      }
    }
    EXPECT_FALSE(reader.midway()) << piece;
    EXPECT_EQ(messages, (std::vector<std::string>{"first", "last"})) << piece;
  }
}

TEST(MessageReader, RefusesALengthOverTheLimitWhenThePrefixComesInPieces) {
  MessageReader reader;
  std::string_view start("\0\xFF", 2);
  EXPECT_EQ(reader.Next(start, 10), Step::kNeedMore);
  std::string_view rest("\xFF\xFF\xFF", 3);
  EXPECT_EQ(reader.Next(rest, 10), Step::kTooLarge);
}

TEST(MessageReader, TellsACompressedMessageFromABadOne) {
  MessageReader compressed;
  std::string_view one("\1\0\0\0\0", 5);
  EXPECT_EQ(compressed.Next(one, 10), Step::kCompressed);
  MessageReader bad;
  std::string_view two("\2\0\0\0\0", 5);
  EXPECT_EQ(bad.Next(two, 10), Step::kBadFlag);
}

TEST(MessageReader, KnowsThatAMessageIsIncomplete) {
  MessageReader reader;
  std::string_view bytes("\0\0\0\0\3ab", 7);
  EXPECT_EQ(reader.Next(bytes, 10), Step::kNeedMore);
  EXPECT_TRUE(reader.midway());
  EXPECT_EQ(reader.buffered(), 7U);
}

}  // namespace
}  // namespace weir::grpc
