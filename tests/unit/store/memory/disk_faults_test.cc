// Damaged files, and disks that accept no writes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/memory/durable_store.h"
#include "store/memory/journal.h"
#include "store/memory/snapshot.h"
#include "support/no_descriptors.h"

namespace weir::store::memory {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

/// Limits the size of this process's files: a full disk.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    old_signal_ = std::signal(SIGXFSZ, SIG_IGN);
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &old_), 0);
    const rlimit tight{bytes, old_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, old_signal_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit old_{};
  void (*old_signal_)(int) = nullptr;
};

class DiskFaults : public testing::Test {
 protected:
  DiskFaults() {
    std::string pattern = (fs::temp_directory_path() / "weir-faults-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    snapshot_ = (folder_ / "limits.snapshot").string();
    path_ = snapshot_ + ".journal";
  }
  ~DiskFaults() override { fs::remove_all(folder_); }

  std::unique_ptr<Engine> NewEngine(KeyStorage keys = KeyStorage::kText) {
    return std::make_unique<Engine>(quota_, EngineOptions{.max_keys = 100'000,
                                                          .keys = keys,
                                                          .clock = &clock_,
                                                          .on_evict = {},
                                                          .track_changes = true});
  }
  std::unique_ptr<Journal> Open(Engine& engine, const std::string& path, bool sync = false) {
    Journal::Options options;
    options.path = path;
    options.sync = sync;
    options.on_status = [this](const Status& status) {
      const std::lock_guard lock(mutex_);
      told_.push_back(status.ok());
    };
    auto opened = Journal::Open(engine, std::move(options));
    EXPECT_TRUE(opened.ok());
    return std::move(*opened);
  }
  static Status Flush(Journal& journal) {
    std::promise<Status> written;
    journal.Await([&](const Status& status) { written.set_value(status); });
    return written.get_future().get();
  }
  std::int64_t Used(Engine& engine, const std::string& key) {
    return quota_.limit() - engine.Peek(key, 0).remaining;
  }
  std::vector<bool> Told() {
    const std::lock_guard lock(mutex_);
    return told_;
  }
  void Write(const std::string& file, std::string_view bytes) {
    std::ofstream(file, std::ios::binary) << bytes;
  }

  ManualClock clock_{Nanos{20'000} * 86'400 * 1'000'000'000};
  Quota quota_ = *Quota::FixedWindow(1000, 1h);
  fs::path folder_;
  std::string snapshot_;
  std::string path_;
  std::mutex mutex_;
  std::vector<bool> told_;
};

TEST_F(DiskFaults, AFullDiskIsToldOfAndWhatWaitedIsWrittenAfterwards) {
  auto engine = NewEngine();
  auto journal = Open(*engine, path_);
  engine->TryAcquire("a", 1);
  ASSERT_TRUE(Flush(*journal).ok());
  EXPECT_TRUE(Told().empty()) << "nothing has changed";
  {
    const FullDisk full(fs::file_size(path_ + ".1") + 10);
    engine->TryAcquire("a", 2);
    const Status failed = Flush(*journal);
    ASSERT_FALSE(failed.ok());
    EXPECT_THAT(failed.error().message, HasSubstr(path_ + ".1"));
    EXPECT_FALSE(Flush(*journal).ok());
  }
  engine->TryAcquire("a", 4);
  ASSERT_TRUE(Flush(*journal).ok());
  EXPECT_EQ(Told(), (std::vector<bool>{false, true})) << "once when it began, once when it ended";
  auto after = NewEngine();
  const auto replayed = Journal::Replay(*after, path_);
  ASSERT_TRUE(replayed.ok());
  EXPECT_EQ(replayed->cut, 0U) << "half a batch is not left in the middle";
  EXPECT_EQ(Used(*after, "a"), 7);
}

// If snapshots are made only at the end, or when the journal has grown, those changes would be
// missing until then.
TEST_F(DiskFaults, ChangesThatWereDroppedAreInASnapshotAsSoonAsTheDiskTakesOne) {
  auto engine = NewEngine();
  Journal::Options options;
  options.path = path_;
  options.most_waiting = 0;
  const auto opened = Journal::Open(*engine, std::move(options));
  ASSERT_TRUE(opened.ok());
  Journal& journal = **opened;
  std::promise<Status> saved;
  SnapshotKeeper::Options keeping;
  keeping.path = snapshot_;
  keeping.interval = 0ms;
  keeping.journal = &journal;
  keeping.on_saved = [&, told = false](const Status& status) mutable {
    if (status.ok() && !std::exchange(told, true)) saved.set_value(status);
  };
  const SnapshotKeeper keeper(*engine, keeping);
  {
    const FullDisk full(fs::file_size(path_ + ".1") + 10);
    engine->TryAcquire("a", 2);
    ASSERT_FALSE(Flush(journal).ok());
  }
  engine->TryAcquire("b", 4);
  ASSERT_TRUE(Flush(journal).ok());
  ASSERT_EQ(saved.get_future().wait_for(20s), std::future_status::ready);
  auto after = NewEngine();
  ASSERT_TRUE(LoadSnapshot(*after, snapshot_).ok());
  ASSERT_TRUE(Journal::Replay(*after, path_).ok());
  EXPECT_EQ(Used(*after, "a"), 2);
  EXPECT_EQ(Used(*after, "b"), 4);
  EXPECT_LT(journal.size(), 1'000'000) << "nothing is lacking any more";
}

TEST_F(DiskFaults, AChangeThatWasDroppedBeforeAnyoneWaitedForItIsNotSaidToBeWritten) {
  auto engine = NewEngine();
  std::promise<void> failed;
  Journal::Options options;
  options.path = path_;
  options.most_waiting = 0;
  options.on_status = [&, told = false](const Status&) mutable {
    if (!std::exchange(told, true)) failed.set_value();
  };
  const auto opened = Journal::Open(*engine, std::move(options));
  ASSERT_TRUE(opened.ok());
  Journal& journal = **opened;
  const std::uint64_t drops = journal.drops();
  {
    const FullDisk full(fs::file_size(path_ + ".1") + 10);
    engine->TryAcquire("a", 2);
    failed.get_future().wait();  // a write of its own collected it, and that has failed
  }
  std::promise<Status> written;
  journal.Await(drops, [&](const Status& status) { written.set_value(status); });
  const Status answer = written.get_future().get();
  ASSERT_FALSE(answer.ok());
  EXPECT_THAT(answer.error().message, HasSubstr("dropped"));
  auto after = NewEngine();
  ASSERT_TRUE(Journal::Replay(*after, path_).ok());
  EXPECT_EQ(Used(*after, "a"), 0);
  EXPECT_TRUE(Flush(journal).ok()) << "what is changed from now on is written";
}

TEST_F(DiskFaults, AFileThatCannotBeBegunIsAnErrorAndIsTriedAgain) {
  auto engine = NewEngine();
  auto journal = Open(*engine, path_);
  engine->TryAcquire("a", 3);
  fs::create_symlink("/dev/full", path_ + ".2");
  const auto rotated = journal->Rotate();
  ASSERT_FALSE(rotated.ok());
  EXPECT_THAT(rotated.error().message, HasSubstr(path_ + ".2"));
  EXPECT_FALSE(fs::exists(fs::symlink_status(path_ + ".2"))) << "nothing is left behind";
  ASSERT_TRUE(Flush(*journal).ok()) << "the old file goes on";
  const auto again = journal->Rotate();
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, 2U);
}

TEST_F(DiskFaults, ASnapshotThatCouldNotRotateKeepsTheJournalsFiles) {
  auto engine = NewEngine();
  auto journal = Open(*engine, path_);
  engine->TryAcquire("a", 3);
  ASSERT_TRUE(Flush(*journal).ok());
  fs::create_directory(path_ + ".2");
  SnapshotKeeper(*engine,
                 {.path = snapshot_, .interval = 0ms, .journal = journal.get(), .on_saved = {}});
  EXPECT_TRUE(fs::exists(path_ + ".1"));
  EXPECT_TRUE(fs::exists(snapshot_));
}

TEST_F(DiskFaults, ASnapshotThatFailedKeepsTheJournalsFiles) {
  auto engine = NewEngine();
  auto journal = Open(*engine, path_);
  engine->TryAcquire("a", 3);
  ASSERT_TRUE(Flush(*journal).ok());
  fs::create_directory(snapshot_);
  std::vector<bool> saved;
  SnapshotKeeper(*engine, {.path = snapshot_,
                           .interval = 0ms,
                           .journal = journal.get(),
                           .on_saved = [&](const Status& one) { saved.push_back(one.ok()); }});
  EXPECT_EQ(saved, std::vector<bool>{false});
  EXPECT_TRUE(fs::exists(path_ + ".1"));
  EXPECT_FALSE(fs::exists(snapshot_ + ".tmp"));
}

TEST_F(DiskFaults, ASnapshotThatDoesNotFitOnTheDiskIsAnError) {
  auto engine = NewEngine();
  for (int i = 0; i < 5000; ++i) engine->TryAcquire("key" + std::to_string(i), 5);
  ASSERT_TRUE(SaveSnapshot(*engine, snapshot_).ok());
  const auto size = fs::file_size(snapshot_);
  engine->TryAcquire("one more", 5);
  {
    const FullDisk full(size / 2);
    EXPECT_FALSE(SaveSnapshot(*engine, snapshot_).ok());
  }
  EXPECT_FALSE(fs::exists(snapshot_ + ".tmp"));
  auto after = NewEngine();
  ASSERT_TRUE(LoadSnapshot(*after, snapshot_).ok()) << "the old one is still there";
  EXPECT_EQ(Used(*after, "key7"), 5);
}

TEST_F(DiskFaults, AFolderThatCannotBeListedIsNotTakenForEmpty) {
  auto engine = NewEngine();
  auto journal = Open(*engine, path_);
  engine->TryAcquire("a", 5);
  ASSERT_TRUE(Flush(*journal).ok());
  journal.reset();
  auto after = NewEngine();
  {
    const test::NoDescriptors none;
    EXPECT_FALSE(Journal::Replay(*after, path_).ok());
    EXPECT_FALSE(Journal::Drop(path_).ok());
    EXPECT_FALSE(Journal::Open(*after, {.path = path_}).ok()) << "it would begin with file 1";
  }
  ASSERT_TRUE(Journal::Replay(*after, path_).ok());
  EXPECT_EQ(Used(*after, "a"), 5);
}

TEST_F(DiskFaults, AFileThatCannotBeReadDoesNotHideTheNextOnes) {
  fs::create_symlink(folder_ / "nowhere", path_ + ".1");
  auto engine = NewEngine();
  auto journal = Open(*engine, path_);
  engine->TryAcquire("a", 5);
  ASSERT_TRUE(Flush(*journal).ok());
  auto after = NewEngine();
  const auto replayed = Journal::Replay(*after, path_);
  ASSERT_FALSE(replayed.ok());
  EXPECT_THAT(replayed.error().message, HasSubstr(path_ + ".1"));
  EXPECT_EQ(Used(*after, "a"), 5);
}

TEST_F(DiskFaults, AFileThatCannotBeReadIsNotTakenForNone) {
  Write(snapshot_, "a file, not a folder");
  const Status loaded = LoadSnapshot(*NewEngine(), snapshot_ + "/x");
  ASSERT_FALSE(loaded.ok());
  EXPECT_NE(loaded.error().code, Code::kNotFound);
  fs::create_symlink(folder_ / "nowhere", path_ + ".1");
  auto engine = NewEngine();
  const auto replayed = Journal::Replay(*engine, path_);
  ASSERT_FALSE(replayed.ok());
  EXPECT_THAT(replayed.error().message, HasSubstr(path_ + ".1"));
}

TEST_F(DiskFaults, AFolderInTheJournalsPlaceCannotBeDropped) {
  fs::create_directory(path_ + ".1");
  const Status dropped = Journal::Drop(path_);
  ASSERT_FALSE(dropped.ok());
  EXPECT_THAT(dropped.error().message, HasSubstr(path_ + ".1"));
}

TEST_F(DiskFaults, TheFilesOfAnEngineThatKeepsOtherKeysAreRefused) {
  {
    auto engine = NewEngine(KeyStorage::kFingerprint);
    auto journal = Open(*engine, path_);
    engine->TryAcquire("a", 3);
    ASSERT_TRUE(Flush(*journal).ok());
  }
  auto other = NewEngine(KeyStorage::kText);
  const auto replayed = Journal::Replay(*other, path_);
  ASSERT_FALSE(replayed.ok());
  EXPECT_THAT(replayed.error().message, HasSubstr(path_ + ".1"));
}

TEST_F(DiskFaults, SizesThatNoBatchHasEndAFile) {
  std::string empty("WRJ2\0\0\0\0\0\0\0\0\0\0\0\0", 16);
  std::string huge("WRJ2\0\0\0\x41\0\0\0\0\0\0\0\0", 16);  // more than a gigabyte
  for (const std::string& bytes : {empty, huge}) {
    Write(path_ + ".1", bytes);
    auto engine = NewEngine();
    const auto replayed = Journal::Replay(*engine, path_);
    ASSERT_TRUE(replayed.ok());
    EXPECT_EQ(replayed->batches, 0U);
    EXPECT_EQ(replayed->cut, 16U);
  }
}

TEST_F(DiskFaults, OtherFilesBesideTheJournalAreLeftAlone) {
  Write(path_ + ".old", "x");
  Write(path_ + ".1x", "x");
  auto engine = NewEngine();
  {
    auto journal = Open(*engine, path_);
    ASSERT_TRUE(Flush(*journal).ok());
  }
  ASSERT_TRUE(Journal::Replay(*engine, path_).ok());
  ASSERT_TRUE(Journal::Drop(path_).ok());
  EXPECT_TRUE(fs::exists(path_ + ".old"));
  EXPECT_TRUE(fs::exists(path_ + ".1x"));
  EXPECT_FALSE(fs::exists(path_ + ".1"));
}

TEST_F(DiskFaults, PathsWithoutAFolderAreInTheWorkingFolder) {
  const fs::path before = fs::current_path();
  fs::current_path(folder_);
  auto engine = NewEngine();
  engine->TryAcquire("a", 3);
  {
    auto journal = Open(*engine, "j");
    engine->TryAcquire("b", 4);
    EXPECT_TRUE(Flush(*journal).ok());
  }
  EXPECT_TRUE(SaveSnapshot(*engine, "s").ok());
  auto after = NewEngine();
  EXPECT_TRUE(LoadSnapshot(*after, "s").ok());
  EXPECT_TRUE(Journal::Replay(*after, "j").ok());
  fs::current_path(before);
  EXPECT_EQ(Used(*after, "a"), 3);
  EXPECT_EQ(Used(*after, "b"), 4);
  EXPECT_TRUE(fs::exists(folder_ / "j.1"));
}

TEST_F(DiskFaults, WhoeverAsksWhileTheJournalEndsIsAnswered) {
  auto engine = NewEngine();
  for (int i = 0; i < 50; ++i) {
    int answered = 0;
    {
      auto journal = Open(*engine, path_);
      Journal& raw = *journal;
      journal->Await([&](const Status&) {
        ++answered;
        raw.Await([&](const Status&) { ++answered; });
      });
      journal->Await([&](const Status&) { ++answered; });
    }
    EXPECT_EQ(answered, 3);
  }
}

/// One application of a durable store and its memory.
struct Asked {
  Asked(Op op, std::string_view key, std::int64_t cost, const Quota& quota)
      : charge{key, cost, &quota} {
    application.op = op;
    application.charges = {&charge, 1};
    application.decisions = {&decision, 1};
  }
  Charge charge;
  Decision decision;
  Application application;
};

TEST_F(DiskFaults, OnlyWhatTookSomethingFailsWithTheDisk) {
  auto engine = NewEngine();
  auto journal = Open(*engine, (folder_ / "missing" / "j").string());
  boost::asio::io_context io;
  DurableStore store(io, *engine, *journal);
  const Quota jobs = *Quota::Concurrency(5, 1h);
  const std::int64_t lease = engine->TryAcquire("job", jobs, 1).lease;
  ASSERT_NE(lease, 0);
  std::vector<Asked> asked;
  asked.reserve(8);
  asked.emplace_back(Op::kPeek, "a", 1, quota_);
  asked.emplace_back(Op::kCharge, "a", 1, quota_);
  asked.emplace_back(Op::kCharge, "a", 5000, quota_);  // never fits
  asked.emplace_back(Op::kRefund, "a", 1, quota_);
  asked.emplace_back(Op::kRelease, "job", 1, jobs).application.lease = lease;
  asked.emplace_back(Op::kRelease, "job", 1, jobs).application.lease = lease;  // a second time
  asked.emplace_back(Op::kLease, "a", 3, quota_);
  asked.emplace_back(Op::kReturn, "a", 1, quota_).application.lease = 1;
  const std::vector<bool> fails = {false, true, false, false, true, false, true, false};
  std::vector<Application> batch;
  for (const Asked& one : asked) batch.push_back(one.application);
  bool done = false;
  store.Apply(batch, [&done] { done = true; });
  io.run();
  ASSERT_TRUE(done);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    EXPECT_EQ(batch[i].status.ok(), !fails[i]) << i;
  }
}

// A client retries a failed refund, and would get the permits again each time.
TEST_F(DiskFaults, ARefundIsAnsweredAlsoIfTheDiskTakesNothing) {
  auto engine = NewEngine();
  auto journal = Open(*engine, path_, /*sync=*/true);
  boost::asio::io_context io;
  DurableStore store(io, *engine, *journal);
  Asked charge(Op::kCharge, "a", 5, quota_);
  store.Apply({&charge.application, 1}, [] {});
  io.run();
  ASSERT_TRUE(charge.application.status.ok());
  Asked refund(Op::kRefund, "a", 5, quota_);
  {
    const FullDisk full(fs::file_size(path_ + ".1") + 10);
    store.Apply({&refund.application, 1}, [] {});
    io.restart();
    io.run();
  }
  EXPECT_TRUE(refund.application.status.ok());
  EXPECT_EQ(Used(*engine, "a"), 0) << "it has happened";
}

TEST_F(DiskFaults, PermitsOfWhatFailsWithTheDiskAreReleased) {
  auto engine = NewEngine();
  auto journal = Open(*engine, (folder_ / "missing" / "j").string());
  boost::asio::io_context io;
  DurableStore store(io, *engine, *journal);
  const Quota jobs = *Quota::Concurrency(5, 1h);
  std::vector<Asked> asked;
  asked.reserve(2);
  asked.emplace_back(Op::kCharge, "job", 1, jobs);
  asked.emplace_back(Op::kLease, "job", 1, jobs);
  for (Asked& one : asked) {
    store.Apply({&one.application, 1}, [] {});
    io.restart();
    io.run();
    EXPECT_FALSE(one.application.status.ok());
  }
  EXPECT_EQ(engine->Peek("job", jobs, 0).remaining, 5);
}

TEST_F(DiskFaults, AnswersOfADurableStoreThatIsGoneAreDropped) {
  auto engine = NewEngine();
  auto journal = Open(*engine, path_, /*sync=*/true);
  boost::asio::io_context io;
  Asked first(Op::kCharge, "a", 1, quota_);
  Asked second(Op::kCharge, "b", 1, quota_);
  int done = 0;
  {
    DurableStore store(io, *engine, *journal);
    store.Apply({&first.application, 1}, [&done] { ++done; });
    store.Apply({&second.application, 1}, [&done] { ++done; });
    ASSERT_TRUE(Flush(*journal).ok());  // so that both answers are posted
  }
  EXPECT_EQ(done, 2);
  io.run();
  EXPECT_EQ(done, 2);
}

TEST_F(DiskFaults, TwoBatchesOfADurableStoreAreAnsweredBoth) {
  auto engine = NewEngine();
  auto journal = Open(*engine, path_, /*sync=*/true);
  boost::asio::io_context io;
  DurableStore store(io, *engine, *journal);
  Asked first(Op::kCharge, "a", 1, quota_);
  Asked second(Op::kCharge, "b", 1, quota_);
  int done = 0;
  store.Apply({&first.application, 1}, [&done] { ++done; });
  store.Apply({&second.application, 1}, [&done] { ++done; });
  io.run();
  EXPECT_EQ(done, 2);
  EXPECT_TRUE(first.application.status.ok());
  EXPECT_TRUE(second.application.status.ok());
}

}  // namespace
}  // namespace weir::store::memory
