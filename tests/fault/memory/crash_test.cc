// A process that charges keys and keeps a journal is killed at random moments. Its files must
// contain everything it acknowledged with sync, and without sync everything up to the last finished
// write. WEIR_SOAK_KILLS: the number of kills (20).

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "store/memory/durable_store.h"
#include "store/memory/journal.h"
#include "store/memory/snapshot.h"

namespace weir::store::memory {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kKeys = 200;
constexpr std::size_t kBatch = 16;

/// Shared by both processes; outlives the killed one.
struct Shared {
  std::array<std::atomic<std::int64_t>, kKeys> answered;  // permits, by key
  std::atomic<std::int64_t> total;                        // of all keys
  std::atomic<std::int64_t> safe;  // the part of `total` that a finished write had seen
  std::atomic<int> begun;          // processes that have started charging
};

class CrashTest : public ::testing::TestWithParam<bool> {
 protected:
  CrashTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "weir-crash-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    snapshot_ = (folder_ / "limits.snapshot").string();
    void* memory =
        ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared_ = new (memory) Shared();
    for (std::size_t i = 0; i < kKeys; ++i) keys_.push_back("key|" + std::to_string(i));
  }
  ~CrashTest() override {
    ::munmap(shared_, sizeof(Shared));
    std::filesystem::remove_all(folder_);
  }

  std::unique_ptr<Engine> Restored() {
    auto engine =
        std::make_unique<Engine>(*Quota::TokenBucket(1, 1), EngineOptions{.max_keys = 10'000,
                                                                          .keys = KeyStorage::kText,
                                                                          .clock = nullptr,
                                                                          .on_evict = {},
                                                                          .track_changes = true});
    const Status loaded = LoadSnapshot(*engine, snapshot_);
    EXPECT_TRUE(loaded.ok() || loaded.error().code == Code::kNotFound) << loaded.error().message;
    const auto replayed = Journal::Replay(*engine, snapshot_ + ".journal");
    EXPECT_TRUE(replayed.ok()) << replayed.error().message;
    return engine;
  }

  const Quota& QuotaOf(std::size_t key) const { return quotas_[key % quotas_.size()]; }

  /// What the child process does until it is killed.
  [[noreturn]] void Charge() {
    auto engine = Restored();
    Journal::Options options;
    options.path = snapshot_ + ".journal";
    options.sync = GetParam();
    options.interval = 2ms;
    auto journal = std::move(*Journal::Open(*engine, options));
    SnapshotKeeper::Options often;
    often.path = snapshot_;
    often.interval = 15ms;
    often.journal = journal.get();
    SnapshotKeeper keeper(*engine, often);
    boost::asio::io_context io;
    DurableStore durable(io, *engine, *journal);
    MemoryStore plain(*engine);
    Store& store = GetParam() ? static_cast<Store&>(durable) : plain;
    ++shared_->begun;
    std::minstd_rand random(static_cast<unsigned>(::getpid()));
    for (;;) {
      ChargeBatch(store, io, random);
      if (GetParam()) continue;
      journal->Await([this, now = shared_->total.load()](const Status& written) {
        if (written.ok()) shared_->safe = now;
      });
    }
  }

  void ChargeBatch(Store& store, boost::asio::io_context& io, std::minstd_rand& random) {
    std::array<Application, kBatch> batch;
    std::array<store::Charge, kBatch> charges;
    std::array<Decision, kBatch> decisions;
    std::array<std::size_t, kBatch> which;
    for (std::size_t i = 0; i < kBatch; ++i) {
      which[i] = random() % kKeys;
      charges[i] = {keys_[which[i]], 1, &QuotaOf(which[i])};
      batch[i].charges = {&charges[i], 1};
      batch[i].decisions = {&decisions[i], 1};
    }
    store.Apply(batch, [&] {
      for (std::size_t i = 0; i < kBatch; ++i) {
        if (!batch[i].status.ok() || !decisions[i].allowed()) continue;
        ++shared_->total;  // first: it may be killed between the two
        ++shared_->answered[which[i]];
      }
    });
    io.restart();
    io.run();
  }

  /// Permits that were granted but are no longer recorded.
  std::int64_t Forgotten() {
    const auto engine = Restored();
    std::int64_t forgotten = 0;
    for (std::size_t i = 0; i < kKeys; ++i) {
      const std::int64_t used =
          QuotaOf(i).limit() - engine->Peek(keys_[i], QuotaOf(i), 0).remaining;
      forgotten += std::max<std::int64_t>(shared_->answered[i] - used, 0);
    }
    return forgotten;
  }

  void CountAnew() {
    const auto engine = Restored();
    for (std::size_t i = 0; i < kKeys; ++i) {
      shared_->answered[i] = QuotaOf(i).limit() - engine->Peek(keys_[i], QuotaOf(i), 0).remaining;
    }
  }

  // Nothing is refilled or released while the test runs.
  std::vector<Quota> quotas_ = {
      *Quota::TokenBucket(5000, 1, 24h), *Quota::FixedWindow(5000, kMaxWindow),
      *Quota::SlidingLog(5000, 24h * 365), *Quota::SlidingCounter(5000, 24h * 3650, 10),
      *Quota::AnchoredWindow(5000, 24h * 365)};
  std::vector<std::string> keys_;
  std::filesystem::path folder_;
  std::string snapshot_;
  Shared* shared_ = nullptr;
};

INSTANTIATE_TEST_SUITE_P(Journal, CrashTest, ::testing::Values(true, false),
                         [](const auto& test) { return test.param ? "Sync" : "Async"; });

int Kills() {
  const char* asked = std::getenv("WEIR_SOAK_KILLS");
  return asked == nullptr ? 20 : std::max(1, std::atoi(asked));
}

TEST_P(CrashTest, NothingAnsweredIsForgottenBeyondTheBound) {
  std::minstd_rand random(std::random_device{}());
  std::int64_t lost = 0;
  std::int64_t answered = 0;
  const int kills = Kills();
  for (int kill = 1; kill <= kills; ++kill) {
    if (kill % 20 == 1) {  // by then most keys have been used up: start over with new ones
      answered += shared_->total;
      std::filesystem::remove_all(folder_);
      std::filesystem::create_directory(folder_);
      for (auto& each : shared_->answered) each = 0;
      shared_->total = 0;
    }
    const int begun = shared_->begun;
    shared_->safe = shared_->total.load();
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) Charge();
    while (shared_->begun == begun) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 60'000));  // any moment
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "it ended by itself";
    const std::int64_t bound = GetParam() ? 0 : shared_->total - shared_->safe;
    const std::int64_t forgotten = Forgotten();
    ASSERT_LE(forgotten, bound) << "kill " << kill;
    lost += forgotten;
    if (forgotten > 0) CountAnew();  // forgotten permits may be granted again
  }
  answered += shared_->total;
  std::cout << "soak limits " << (GetParam() ? "sync" : "async") << ": kills " << kills
            << ", permits answered " << answered << ", forgotten " << lost << "\n";
  EXPECT_GT(answered, 0);
}

}  // namespace
}  // namespace weir::store::memory
