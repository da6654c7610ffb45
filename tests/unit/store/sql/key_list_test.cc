#include "store/sql/key_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "store/sql/row.h"

namespace weir::store::sql {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Format 1, then a section for each algorithm: its number, its size, that many bytes.
std::string State(std::initializer_list<Algorithm> algorithms) {
  std::string bytes = "\x01";
  for (const Algorithm algorithm : algorithms) {
    bytes += static_cast<char>(algorithm);
    bytes += "\x02xx";
  }
  return bytes;
}

/// A table.
struct Table {
  std::vector<RowHead> rows;
  int looks = 0;

  Result<KeyPage> Read(const KeyQuery& query) {
    std::ranges::sort(rows, {}, &RowHead::id);
    return ReadKeys(
        query, [this](const std::string& after, std::size_t limit) -> Result<std::vector<RowHead>> {
          ++looks;
          std::vector<RowHead> found;
          for (const RowHead& row : rows) {
            if (row.id > after && found.size() < limit) found.push_back(row);
          }
          return found;
        });
  }
  std::vector<std::string> KeysOf(KeyQuery query) {
    std::vector<std::string> keys;
    do {
      const Result<KeyPage> page = Read(query);
      EXPECT_TRUE(page.ok());
      for (const HeldKey& held : page->keys) keys.push_back(held.key);
      query.cursor = page->next;
    } while (!query.cursor.empty());
    return keys;
  }
};

TEST(SqlKeyList, GoesThroughTheTablePageByPage) {
  Table table;
  for (const char* id : {"a", "b", "ba", "bb", "c"}) {
    table.rows.push_back({id, State({Algorithm::kFixedWindow})});
  }
  EXPECT_THAT(table.KeysOf({.limit = 2}), ElementsAre("a", "b", "ba", "bb", "c"));
  EXPECT_THAT(table.KeysOf({.prefix = "b", .limit = 1}), ElementsAre("b", "ba", "bb"));
  EXPECT_THAT(table.KeysOf({.prefix = "bc", .limit = 9}), IsEmpty());
  for (const char* cursor : {"a", "0g", "zz"}) {
    EXPECT_EQ(table.Read({.cursor = cursor}).error().code, Code::kInvalidArgument);
  }
}

TEST(SqlKeyList, LeavesOutWhatIsAsGoodAsAbsentAndLooksABoundedNumberOfTimes) {
  Table table;
  for (int i = 1000; i < 2000; ++i) {
    table.rows.push_back({std::to_string(i), State({Algorithm::kFixedWindow}), /*stale=*/true});
  }
  table.rows.push_back({"3000", State({Algorithm::kTokenBucket, Algorithm::kSlidingLog})});
  table.rows.push_back({"3001", ""});
  const Result<KeyPage> first = table.Read({.limit = 10});
  EXPECT_THAT(first->keys, IsEmpty());
  EXPECT_FALSE(first->next.empty());
  EXPECT_LE(table.looks, 20);
  EXPECT_THAT(table.KeysOf({.limit = 10}), ElementsAre("3000", "3000"));
}

TEST(RowSummary, TellsTheKeyAndItsAlgorithmsAsFarAsTheBytesGo) {
  const std::string bytes = State({Algorithm::kTokenBucket, Algorithm::kConcurrency});
  EXPECT_EQ(Summarize("k", bytes).key, "k");
  EXPECT_THAT(Summarize("k", bytes).algorithms,
              ElementsAre(Algorithm::kTokenBucket, Algorithm::kConcurrency));
  // Cut within the first state: its algorithm is still known.
  EXPECT_THAT(Summarize("k", bytes.substr(0, 4)).algorithms, ElementsAre(Algorithm::kTokenBucket));
  for (const char* damaged : {"", "\x02", "\x01\x09", "\x01\x07\x01x"}) {
    EXPECT_THAT(Summarize("k", damaged).algorithms, IsEmpty());
  }
  // For a long key the row itself contains the name, after the states.
  const std::string key(300, 'k');
  std::string row =
      State({Algorithm::kFixedWindow}) + "\xff\xac\x02" + key;  // 300 = 0x2c + 2 * 128
  EXPECT_EQ(Summarize(RowId(key), row).key, key);
  row.pop_back();
  EXPECT_EQ(Summarize(RowId(key), row).key, "");
}

}  // namespace
}  // namespace weir::store::sql
