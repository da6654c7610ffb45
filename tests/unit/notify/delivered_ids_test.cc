#include "notify/delivered_ids.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/temp_dir.h"

namespace weir::notify {
namespace {

using testing::UnorderedElementsAre;
using Ids = std::vector<std::string>;

TEST(DeliveredIds, AreKnownAfterARestart) {
  const test::TempDir dir;
  const std::string home = dir / "made";
  {
    auto ids = DeliveredIds::Open(home);
    ASSERT_TRUE(ids) << ids.error().message;
    EXPECT_TRUE((*ids)->Known(Ids{"a"})->empty());
    ASSERT_TRUE((*ids)->Add(Ids{"a", "b", "a"}));
    ASSERT_TRUE((*ids)->Add(Ids{"b"}));
  }
  auto ids = DeliveredIds::Open(home);
  ASSERT_TRUE(ids) << ids.error().message;
  EXPECT_THAT(*(*ids)->Known(Ids{"a", "b", "c"}), UnorderedElementsAre("a", "b"));
}

TEST(DeliveredIds, TheOldestAreForgotten) {
  const test::TempDir dir;
  auto ids = DeliveredIds::Open(dir.path(), 2);
  ASSERT_TRUE(ids) << ids.error().message;
  for (const char* id : {"a", "b", "c"}) ASSERT_TRUE((*ids)->Add(Ids{id}));
  EXPECT_THAT(*(*ids)->Known(Ids{"a", "b", "c"}), UnorderedElementsAre("b", "c"));
}

TEST(DeliveredIds, ADirectoryThatCannotBeIsAnError) {
  const test::TempDir dir;
  const std::string file = dir.Write("file", "");
  EXPECT_FALSE(DeliveredIds::Open(file + "/below"));
}

}  // namespace
}  // namespace weir::notify
