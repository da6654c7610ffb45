#include "store/memory/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "store/memory/durable_store.h"
#include "store/memory/snapshot.h"

namespace weir::store::memory {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

Application ChargeOf(const Charge& charge, Decision& decision) {
  Application application;
  application.charges = {&charge, 1};
  application.decisions = {&decision, 1};
  return application;
}

class JournalTest : public ::testing::Test {
 protected:
  JournalTest() {
    std::string pattern = (fs::temp_directory_path() / "weir-journal-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    snapshot_ = (folder_ / "limits.snapshot").string();
    path_ = snapshot_ + ".journal";
  }
  ~JournalTest() override { fs::remove_all(folder_); }

  std::unique_ptr<Engine> NewEngine() {
    return std::make_unique<Engine>(quota_, EngineOptions{.max_keys = 1000,
                                                          .keys = KeyStorage::kText,
                                                          .clock = &clock_,
                                                          .on_evict = {},
                                                          .track_changes = true});
  }
  std::unique_ptr<Journal> Open(Engine& engine, bool sync = false) {
    Journal::Options options;
    options.path = path_;
    options.sync = sync;
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
  std::size_t Files() const {
    std::size_t count = 0;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      count += entry.path().string().find(".journal.") != std::string::npos ? 1 : 0;
    }
    return count;
  }

  ManualClock clock_{Nanos{20'000} * 86'400 * 1'000'000'000};
  Quota quota_ = *Quota::FixedWindow(1000, 1h);
  fs::path folder_;
  std::string snapshot_;
  std::string path_;
};

TEST_F(JournalTest, ChargesSurviveWithoutASnapshot) {
  auto before = NewEngine();
  auto journal = Open(*before);
  before->TryAcquire("a", 7);
  ASSERT_TRUE(Flush(*journal).ok());
  before->TryAcquire("b", 2);
  ASSERT_TRUE(Flush(*journal).ok());
  auto after = NewEngine();  // as if the process had been killed: nothing was closed
  const auto replayed = Journal::Replay(*after, path_);
  ASSERT_TRUE(replayed.ok());
  EXPECT_EQ(replayed->cut, 0U);
  EXPECT_EQ(Used(*after, "a"), 7);
  EXPECT_EQ(Used(*after, "b"), 2);
}

TEST_F(JournalTest, ATornEndIsCutOffAndTheRestRead) {
  auto engine = NewEngine();
  auto journal = Open(*engine);
  std::vector<std::uintmax_t> ends;
  const std::string file = path_ + ".1";
  for (int i = 0; i < 3; ++i) {
    engine->TryAcquire("a", 1);
    ASSERT_TRUE(Flush(*journal).ok());
    ends.push_back(fs::file_size(file));
  }
  std::string bytes(ends.back(), '\0');
  std::ifstream(file, std::ios::binary)
      .read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  for (std::uintmax_t size = ends[0]; size <= ends[2]; ++size) {
    std::ofstream(file, std::ios::binary) << bytes.substr(0, size);
    auto after = NewEngine();
    const auto replayed = Journal::Replay(*after, path_);
    ASSERT_TRUE(replayed.ok()) << size;
    EXPECT_EQ(Used(*after, "a"), size == ends[2] ? 3 : size >= ends[1] ? 2 : 1) << size;
    EXPECT_EQ(replayed->cut == 0, size == ends[0] || size == ends[1] || size == ends[2]) << size;
  }
  for (std::size_t i = 0; i < bytes.size(); i += 7) {  // a wrong bit anywhere does no harm
    std::string wrong = bytes;
    wrong[i] = static_cast<char>(wrong[i] ^ 4);
    std::ofstream(file, std::ios::binary) << wrong;
    auto after = NewEngine();
    const auto replayed = Journal::Replay(*after, path_);
    EXPECT_LE(Used(*after, "a"), 3) << replayed.ok();
  }
}

TEST_F(JournalTest, ASnapshotTakesThePlaceOfTheFilesBeforeIt) {
  auto engine = NewEngine();
  auto journal = Open(*engine);
  {
    SnapshotKeeper::Options options;
    options.path = snapshot_;
    options.interval = 0ms;
    options.journal = journal.get();
    engine->TryAcquire("a", 3);
    ASSERT_TRUE(Flush(*journal).ok());
    SnapshotKeeper keeper(*engine, options);
  }
  EXPECT_EQ(Files(), 1U);
  engine->TryAcquire("a", 4);
  ASSERT_TRUE(Flush(*journal).ok());
  auto after = NewEngine();
  ASSERT_TRUE(LoadSnapshot(*after, snapshot_).ok());
  EXPECT_EQ(Used(*after, "a"), 3);
  ASSERT_TRUE(Journal::Replay(*after, path_).ok());
  EXPECT_EQ(Used(*after, "a"), 7);
}

TEST_F(JournalTest, ASnapshotIsMadeWhenTheJournalHasGrown) {
  auto engine = NewEngine();
  auto journal = Open(*engine);
  std::promise<Status> saved;
  SnapshotKeeper::Options options;
  options.path = snapshot_;
  options.interval = 0ms;
  options.journal = journal.get();
  options.most_journal = 20'000;
  options.on_saved = [&, told = false](const Status& status) mutable {
    if (!std::exchange(told, true)) saved.set_value(status);
  };
  const SnapshotKeeper keeper(*engine, options);
  for (int i = 0; i < 1000; ++i) engine->TryAcquire("key" + std::to_string(i), 1);
  ASSERT_TRUE(Flush(*journal).ok());
  ASSERT_GT(journal->size(), 20'000);
  auto outcome = saved.get_future();
  ASSERT_EQ(outcome.wait_for(20s), std::future_status::ready);
  EXPECT_TRUE(outcome.get().ok());
  EXPECT_LT(journal->size(), 20'000) << "it has begun a new file";
}

TEST_F(JournalTest, ACrashBeforeTheNextSnapshotReadsAllFilesInOrder) {
  auto engine = NewEngine();
  engine->TryAcquire("a", 1);
  {
    auto journal = Open(*engine);
    ASSERT_TRUE(Flush(*journal).ok());
  }
  for (int restart = 2; restart <= 12; ++restart) {  // .10 comes after .9
    engine = NewEngine();
    ASSERT_TRUE(Journal::Replay(*engine, path_).ok());
    EXPECT_EQ(Used(*engine, "a"), restart - 1);
    auto journal = Open(*engine);
    engine->TryAcquire("a", 1);
    ASSERT_TRUE(Flush(*journal).ok());
  }
  ASSERT_TRUE(Journal::Drop(path_).ok());
  EXPECT_EQ(Files(), 0U);
}

TEST_F(JournalTest, WithoutAFolderSyncFailsAndAsyncSaysSo) {
  auto engine = NewEngine();
  Journal::Options options;
  options.path = (folder_ / "missing" / "x.journal").string();
  options.sync = true;
  EXPECT_FALSE(Journal::Open(*engine, options).ok());
  options.sync = false;
  auto journal = Journal::Open(*engine, options);
  ASSERT_TRUE(journal.ok());
  engine->TryAcquire("a", 5);
  EXPECT_FALSE(Flush(**journal).ok());
  fs::create_directory(folder_ / "missing");
  EXPECT_TRUE(Flush(**journal).ok());
  auto after = NewEngine();
  ASSERT_TRUE(Journal::Replay(*after, options.path).ok());
  EXPECT_EQ(Used(*after, "a"), 5);
}

TEST_F(JournalTest, ADurableStoreAnswersWhenTheChargeIsOnDisk) {
  auto engine = NewEngine();
  auto journal = Open(*engine, /*sync=*/true);
  boost::asio::io_context io;
  DurableStore store(io, *engine, *journal);
  const Charge charge{"a", 2, &quota_};
  Decision decision;
  Application application = ChargeOf(charge, decision);
  bool done = false;
  store.Apply({&application, 1}, [&] {
    done = true;
    auto after = NewEngine();
    ASSERT_TRUE(Journal::Replay(*after, path_).ok());
    EXPECT_EQ(Used(*after, "a"), 2);
  });
  EXPECT_FALSE(done);
  io.run();
  EXPECT_TRUE(done);
  EXPECT_TRUE(application.status.ok());
  EXPECT_TRUE(application.applied);
}

TEST_F(JournalTest, WhatChangesNothingIsAnsweredAtOnce) {
  auto engine = NewEngine();
  auto journal = Open(*engine, /*sync=*/true);
  boost::asio::io_context io;
  DurableStore store(io, *engine, *journal);
  const Charge charge{"a", 5000, &quota_};
  Decision decision;
  for (const Op op : {Op::kCharge, Op::kPeek}) {
    Application application = ChargeOf(charge, decision);
    application.op = op;
    bool done = false;
    store.Apply({&application, 1}, [&] { done = true; });
    EXPECT_TRUE(done);
  }
}

TEST_F(JournalTest, AClosedStoreTellsWhoeverWaits) {
  auto engine = NewEngine();
  auto journal = Open(*engine, /*sync=*/true);
  boost::asio::io_context io;
  const Charge charge{"a", 1, &quota_};
  Decision decision;
  Application application = ChargeOf(charge, decision);
  int done = 0;
  {
    DurableStore store(io, *engine, *journal);
    store.Apply({&application, 1}, [&] { ++done; });
  }
  EXPECT_EQ(done, 1);
  EXPECT_FALSE(application.status.ok());
  journal.reset();
  io.run();
  EXPECT_EQ(done, 1);
}

}  // namespace
}  // namespace weir::store::memory
