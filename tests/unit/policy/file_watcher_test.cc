#include "policy/file_watcher.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "support/temp_dir.h"

namespace weir::policy {
namespace {

using namespace std::chrono_literals;

/// Counts calls and lets a test wait for the next one.
class Bell {
 public:
  void Ring() {
    const std::lock_guard lock(mutex_);
    ++rung_;
    changed_.notify_all();
  }
  /// True if it rang since the last call; waits for it up to a deadline that no healthy run
  /// reaches.
  bool Rang() {
    std::unique_lock lock(mutex_);
    const bool rang = changed_.wait_for(lock, 20s, [this] { return rung_ > heard_; });
    heard_ = rung_;
    return rang;
  }
  int rung() {
    const std::lock_guard lock(mutex_);
    return rung_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int rung_ = 0;
  int heard_ = 0;
};

class FileWatcherTest : public ::testing::Test {
 protected:
  void Watch(const std::filesystem::path& path, std::chrono::milliseconds interval = 1h,
             std::chrono::milliseconds settle = 10ms) {
    auto started =
        FileWatcher::Start({{path.string()}, [this] { bell_.Ring(); }, settle, interval, {}});
    ASSERT_TRUE(started.ok());
    watcher_ = std::move(*started);
  }

  test::TempDir folder_;
  Bell bell_;
  std::unique_ptr<FileWatcher> watcher_;
};

TEST_F(FileWatcherTest, TellsWhenAFileIsWrittenInPlace) {
  Watch(folder_.Write("p.yaml", "one"));
  folder_.Write("p.yaml", "other");
  EXPECT_TRUE(bell_.Rang());
}

// A service that starts reads its files, opens its databases and only then begins to watch.
TEST_F(FileWatcherTest, TellsWhatChangedBetweenTheReadingAndTheWatch) {
  const std::vector<std::string> paths = {folder_.Write("p.yaml", "one").string()};
  const auto read = FileWatcher::Look(paths);
  folder_.Write("p.yaml", "other");
  FileWatcher::Options options{.paths = paths, .on_change = [this] { bell_.Ring(); }};
  options.interval = 1h;
  options.read = read;
  auto started = FileWatcher::Start(std::move(options));
  ASSERT_TRUE(started.ok());
  watcher_ = std::move(*started);
  EXPECT_TRUE(bell_.Rang());
}

TEST_F(FileWatcherTest, TellsNothingIfNothingChangedSinceTheReading) {
  const std::vector<std::string> paths = {folder_.Write("p.yaml", "one").string()};
  FileWatcher::Options options{.paths = paths, .on_change = [this] { bell_.Ring(); }};
  options.settle = 10ms;
  options.read = FileWatcher::Look(paths);
  auto started = FileWatcher::Start(std::move(options));
  ASSERT_TRUE(started.ok());
  watcher_ = std::move(*started);
  folder_.Write("p.yaml", "other");
  EXPECT_TRUE(bell_.Rang());
  EXPECT_EQ(bell_.rung(), 1);
}

TEST_F(FileWatcherTest, TellsWhenAFileIsReplacedByARenameAgainAndAgain) {
  Watch(folder_.Write("p.yaml", "one"));
  for (const char* text : {"two", "three!", "four"}) {
    folder_.Write(".p.yaml.swp", text);
    std::filesystem::rename(folder_ / ".p.yaml.swp", folder_ / "p.yaml");
    EXPECT_TRUE(bell_.Rang()) << text;
  }
}

TEST_F(FileWatcherTest, TellsWhenALinkOnTheWayIsSwapped) {
  // How Kubernetes mounts a ConfigMap: p.yaml → ..data/p.yaml, ..data → a folder per version.
  for (const char* version : {"v1", "v2", "v3"}) {
    std::filesystem::create_directory(folder_ / version);
    folder_.Write(std::string(version) + "/p.yaml", version);
  }
  std::filesystem::create_directory_symlink("v1", folder_ / "..data");
  std::filesystem::create_symlink("..data/p.yaml", folder_ / "p.yaml");
  Watch(folder_ / "p.yaml");
  for (const char* version : {"v2", "v3"}) {
    std::filesystem::create_directory_symlink(version, folder_ / "..data_tmp");
    std::filesystem::rename(folder_ / "..data_tmp", folder_ / "..data");
    EXPECT_TRUE(bell_.Rang()) << version;
  }
}

TEST_F(FileWatcherTest, TellsWhenAMissingFileAppearsAndWhenItGoes) {
  Watch(folder_ / "p.yaml");
  folder_.Write("p.yaml", "here");
  EXPECT_TRUE(bell_.Rang());
  std::filesystem::remove(folder_ / "p.yaml");
  EXPECT_TRUE(bell_.Rang());
}

TEST_F(FileWatcherTest, FindsAFolderThatCameLater) {
  Watch(folder_ / "later/p.yaml", 20ms);
  std::filesystem::create_directory(folder_ / "later");
  folder_.Write("later/p.yaml", "here");
  EXPECT_TRUE(bell_.Rang());
}

// Half a file may be valid, with fewer policies. Only polling can see it: it has not been closed.
TEST_F(FileWatcherTest, TellsNothingOfAFileThatIsStillBeingWritten) {
  Watch(folder_.Write("p.yaml", "one"), 1ms, 1h);
  std::ofstream half(folder_ / "p.yaml");
  half << "on" << std::flush;
  std::this_thread::sleep_for(200ms);
  EXPECT_EQ(bell_.rung(), 0);
}

TEST_F(FileWatcherTest, ABusyNeighbourDoesNotKeepItFromTelling) {
  Watch(folder_.Write("p.yaml", "one"), 1h, 200ms);
  std::atomic<bool> stop{false};
  std::thread neighbour([&] {
    while (!stop.load()) folder_.Write("app.log", "a line");
  });
  folder_.Write("p.yaml", "other");
  EXPECT_TRUE(bell_.Rang());
  stop.store(true);
  neighbour.join();
}

TEST_F(FileWatcherTest, OtherFilesAreOfNoConcernAndATriggerAlwaysIs) {
  Watch(folder_.Write("p.yaml", "one"));
  folder_.Write("other.yaml", "x");
  watcher_->Trigger();
  EXPECT_TRUE(bell_.Rang());
  EXPECT_EQ(bell_.rung(), 1);
}

TEST_F(FileWatcherTest, TellsOfANewFileInAFolder) {
  Watch(folder_.path());
  folder_.Write("new.yaml", "one");
  EXPECT_TRUE(bell_.Rang());
}

}  // namespace
}  // namespace weir::policy
