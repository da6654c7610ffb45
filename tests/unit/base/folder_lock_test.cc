#include "base/folder_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "support/temp_dir.h"

namespace weir {
namespace {

using ::testing::HasSubstr;

TEST(FolderLock, OneHasItUntilItsEnd) {
  const test::TempDir folder;
  const std::string path = folder.path().string();
  {
    const Result<FolderLock> first = FolderLock::Take(path);
    ASSERT_TRUE(first.ok()) << first.error().message;
    const Result<FolderLock> second = FolderLock::Take(path);
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().code, Code::kUnavailable);
    EXPECT_THAT(second.error().message,
                HasSubstr(path + " is in use by process " + std::to_string(::getpid()) + ";"));
  }
  EXPECT_TRUE(FolderLock::Take(path).ok());
}

TEST(FolderLock, AFolderThatIsNotThereIsNamed) {
  const Result<FolderLock> lock = FolderLock::Take("/nonexistent");
  ASSERT_FALSE(lock.ok());
  EXPECT_THAT(lock.error().message, HasSubstr("/nonexistent/lock: No such file"));
}

}  // namespace
}  // namespace weir
