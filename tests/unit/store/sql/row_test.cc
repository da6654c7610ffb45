#include "store/sql/row.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "algorithm/state.h"

namespace weir::store::sql {
namespace {

using namespace std::chrono_literals;

// A fixed window's bytes: i64 end, i64 count.
RowState::Bytes Window(std::int64_t end, std::int64_t count) {
  RowState::Bytes bytes(16);
  for (int i = 0; i < 8; ++i) {
    bytes[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(end >> (8 * i));
    bytes[static_cast<std::size_t>(8 + i)] = static_cast<std::uint8_t>(count >> (8 * i));
  }
  return bytes;
}

TEST(RowId, IsTheKeyItselfUpTo255Bytes) {
  EXPECT_EQ(RowId(""), "");
  EXPECT_EQ(RowId("user=42"), "user=42");
  EXPECT_EQ(RowId(std::string(255, 'x')), std::string(255, 'x'));
}

TEST(RowId, IsAPrefixAndADigestOfLongerKeys) {
  const std::string id = RowId(std::string(256, 'x'));
  EXPECT_EQ(id.size(), 256U);
  EXPECT_EQ(id.substr(0, 224), std::string(224, 'x'));
  EXPECT_NE(id, RowId(std::string(257, 'x')));
  EXPECT_NE(RowId(std::string(4095, 'x') + 'a'), RowId(std::string(4095, 'x') + 'b'));
  // SHA-256 of 256 bytes "a": 02d7160d77e18c6447be80c2e355c7ed4388545271702c50253b0914c65ce5fe
  EXPECT_EQ(RowId(std::string(256, 'a')).substr(224, 4), "\x02\xd7\x16\x0d");
}

TEST(RowState, AFreshKeyHasNoBytes) {
  const RowState row = *RowState::Parse("k", "");
  EXPECT_EQ(row.Encode("k"), "");
  EXPECT_EQ(row.Encode(std::string(1000, 'k')), "");
  EXPECT_EQ(row.FreshAt(), 0);
}

TEST(RowState, ItsBytesAreAsDocumented) {
  RowState row;
  row[Algorithm::kFixedWindow] = Window(1000, 3);
  std::string expected("\x01\x01\x10", 3);  // format 1, section 1 of 16 bytes
  expected += std::string("\xe8\x03\0\0\0\0\0\0\x03\0\0\0\0\0\0\0", 16);
  EXPECT_EQ(row.Encode("k"), expected);
  EXPECT_EQ(row.FreshAt(), 1000);
}

TEST(RowState, KeepsAStatePerAlgorithmAndTheTextOfALongKey) {
  const std::string key(300, 'k');
  RowState row;
  row[Algorithm::kFixedWindow] = Window(1000, 3);
  row[Algorithm::kTokenBucket] = RowState::Bytes(12);
  const std::string bytes = row.Encode(key);
  EXPECT_NE(bytes.find(key), std::string::npos);
  RowState read = *RowState::Parse(key, bytes);
  EXPECT_EQ(read[Algorithm::kFixedWindow], Window(1000, 3));
  EXPECT_EQ(read[Algorithm::kTokenBucket].size(), 12U);
  EXPECT_TRUE(read[Algorithm::kSlidingLog].empty());
  EXPECT_EQ(read.Encode(key), bytes);
  read.Clear();
  EXPECT_EQ(read.Encode(key), "");
}

TEST(RowState, ANewRowOfALongKeyIsNoOtherKeys) {
  RowState row;
  row[Algorithm::kFixedWindow] = Window(1000, 3);
  const Result<RowState> read =
      RowState::Parse(std::string(300, 'b'), row.Encode(std::string(300, 'a')));
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, Code::kAlreadyExists);
}

TEST(RowState, RefusesWhatItCouldNotHaveWritten) {
  RowState row;
  row[Algorithm::kTokenBucket] = RowState::Bytes(12);
  row[Algorithm::kFixedWindow] = Window(1000, 3);
  const std::string good = row.Encode("k");
  ASSERT_TRUE(RowState::Parse("k", good).ok());
  // 1 format byte, 2 + 12 of the bucket: a cut anywhere else counts as damage.
  for (std::size_t size = 1; size < good.size(); ++size) {
    const bool whole = size == 1 || size == 15;
    EXPECT_EQ(RowState::Parse("k", good.substr(0, size)).ok(), whole) << size;
  }
  EXPECT_FALSE(RowState::Parse("k", "\x02" + good.substr(1)).ok());                     // format
  EXPECT_FALSE(RowState::Parse("k", good + good.substr(1)).ok());                       // order
  EXPECT_FALSE(RowState::Parse("k", std::string("\x01\x05\x01x", 4)).ok());             // section
  EXPECT_FALSE(RowState::Parse("k", std::string("\x01\x01\x00", 3)).ok());              // empty
  EXPECT_FALSE(RowState::Parse("k", std::string("\x01\x01\xFF\xFF\xFF\x7F", 6)).ok());  // size
  EXPECT_FALSE(RowState::Parse("k", std::string(1, '\x01') + "\x01\x10" + std::string(16, '\xFF'))
                   .ok());  // a count below 0
}

}  // namespace
}  // namespace weir::store::sql
