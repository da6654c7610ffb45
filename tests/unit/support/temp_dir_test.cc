#include "support/temp_dir.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "support/ports.h"

namespace weir::test {
namespace {

TEST(TempDir, IsGoneWithItsContentsAfterItsLife) {
  std::filesystem::path path;
  {
    const TempDir dir;
    path = dir.path();
    EXPECT_EQ(ReadFile(dir.Write("a/b.txt", "text")), "text");
    EXPECT_TRUE(std::filesystem::exists(dir / "a/b.txt"));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(FreePort, NeverGivesOnePortTwice) {
  std::set<int> seen;
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(seen.insert(FreePort()).second);
}

}  // namespace
}  // namespace weir::test
