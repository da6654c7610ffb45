#include "store/memory/snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

namespace weir::store::memory {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class SnapshotTest : public ::testing::Test {
 protected:
  SnapshotTest() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "weir-snapshot-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    path_ = (folder_ / "limits.snapshot").string();
  }
  ~SnapshotTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<Engine> NewEngine() {
    return std::make_unique<Engine>(
        quota_, EngineOptions{
                    .max_keys = 1000, .keys = KeyStorage::kText, .clock = &clock_, .on_evict = {}});
  }

  ManualClock clock_{Nanos{20'000} * 86'400 * 1'000'000'000};
  Quota quota_ = *Quota::FixedWindow(10, 1h);
  std::filesystem::path folder_;
  std::string path_;
};

TEST_F(SnapshotTest, ChargesSurviveARestart) {
  auto before = NewEngine();
  before->TryAcquire("a", 7);
  ASSERT_TRUE(SaveSnapshot(*before, path_).ok());
  before->TryAcquire("a", 1);  // after the snapshot: lost
  auto after = NewEngine();
  ASSERT_TRUE(LoadSnapshot(*after, path_).ok());
  EXPECT_EQ(after->Peek("a", 0).remaining, 3);
}

TEST_F(SnapshotTest, TheFileIsForItsOwnerAloneAndNothingElseIsLeft) {
  ASSERT_TRUE(SaveSnapshot(*NewEngine(), path_).ok());
  ASSERT_TRUE(SaveSnapshot(*NewEngine(), path_).ok());
  struct stat info {};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  int files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_)) ++files;
  EXPECT_EQ(files, 1);
}

TEST_F(SnapshotTest, NoFileIsNotFound) {
  const Status loaded = LoadSnapshot(*NewEngine(), path_);
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.error().code, Code::kNotFound);
}

TEST_F(SnapshotTest, ADamagedFileIsReportedAndTheEngineWorks) {
  auto before = NewEngine();
  for (int i = 0; i < 100; ++i) before->TryAcquire("key" + std::to_string(i), 5);
  ASSERT_TRUE(SaveSnapshot(*before, path_).ok());
  const auto size = static_cast<std::streamoff>(std::filesystem::file_size(path_));
  std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(size / 2);
  const int old = file.get();
  file.seekp(size / 2);
  file.put(static_cast<char>(old ^ 0x55));
  file.close();
  auto after = NewEngine();
  const Status loaded = LoadSnapshot(*after, path_);
  ASSERT_FALSE(loaded.ok());
  EXPECT_THAT(loaded.error().message, HasSubstr(path_));
  EXPECT_EQ(after->Peek("key1", 0).remaining, 10);
  EXPECT_EQ(after->TryAcquire("key1").remaining, 9);
}

// It may be from a later version, and is still there after returning to that version.
TEST_F(SnapshotTest, AFileThatCannotBeUsedIsKept) {
  std::ofstream(path_) << "WEIRSNP9 of a later version";
  const auto engine = NewEngine();
  const Status loaded = LoadSnapshot(*engine, path_);
  ASSERT_FALSE(loaded.ok());
  EXPECT_THAT(loaded.error().message, HasSubstr("kept as " + path_ + ".unreadable"));
  ASSERT_TRUE(SaveSnapshot(*engine, path_).ok());
  std::string kept;
  std::getline(std::ifstream(path_ + ".unreadable"), kept);
  EXPECT_EQ(kept, "WEIRSNP9 of a later version");
}

TEST_F(SnapshotTest, AnOldSnapshotSurvivesAFailedSave) {
  auto engine = NewEngine();
  engine->TryAcquire("a", 7);
  ASSERT_TRUE(SaveSnapshot(*engine, path_).ok());
  std::filesystem::create_directory(path_ + ".tmp");  // no file can be written there
  EXPECT_FALSE(SaveSnapshot(*engine, path_).ok());
  EXPECT_TRUE(LoadSnapshot(*NewEngine(), path_).ok());
}

TEST_F(SnapshotTest, TheKeeperSavesAtItsIntervalAndAtTheEnd) {
  auto engine = NewEngine();
  std::atomic<int> saves{0};
  {
    const SnapshotKeeper keeper(
        *engine, {.path = path_, .interval = 1ms, .on_saved = [&saves](const Status& saved) {
                    EXPECT_TRUE(saved.ok());
                    ++saves;
                  }});
    while (saves.load() < 2) std::this_thread::yield();
    engine->TryAcquire("late", 4);
  }
  auto after = NewEngine();
  ASSERT_TRUE(LoadSnapshot(*after, path_).ok());
  EXPECT_EQ(after->Peek("late", 0).remaining, 6);
}

}  // namespace
}  // namespace weir::store::memory
