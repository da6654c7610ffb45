#include "base/folder_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <optional>
#include <string>

#include "support/temp_dir.h"

namespace weir {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST(FolderLock, OneHasItUntilItsEnd) {
  const test::TempDir folder;
  const std::string path = folder.path().string();
  {
    const Result<FolderLock> first = FolderLock::Take(path);
    ASSERT_TRUE(first.ok()) << first.error().message;
    const Result<FolderLock> second = FolderLock::Take(path, "lock", 0ms);
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().code, Code::kUnavailable);
    EXPECT_THAT(second.error().message,
                HasSubstr(path + " is in use by process " + std::to_string(::getpid()) + ";"));
  }
  EXPECT_TRUE(FolderLock::Take(path).ok());
}

// For a process that was killed and has not ended yet when the next one starts.
TEST(FolderLock, WaitsForTheOneBeforeItToEnd) {
  const test::TempDir folder;
  const std::string path = folder.path().string();
  std::optional<Result<FolderLock>> first(FolderLock::Take(path));
  ASSERT_TRUE(first->ok());
  auto second =
      std::async(std::launch::async, [&] { return FolderLock::Take(path, "lock", 2min); });
  EXPECT_EQ(second.wait_for(100ms), std::future_status::timeout);
  first.reset();
  EXPECT_TRUE(second.get().ok());
}

TEST(FolderLock, AFolderThatIsNotThereIsNamed) {
  const Result<FolderLock> lock = FolderLock::Take("/nonexistent");
  ASSERT_FALSE(lock.ok());
  EXPECT_THAT(lock.error().message, HasSubstr("/nonexistent/lock: No such file"));
}

}  // namespace
}  // namespace weir
