#include "admin/shared/shared_policy_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "admin/shared/older_state.h"
#include "support/wait.h"

namespace weir::policy::shared {
namespace {

using test::WaitUntil;

/// A database that others change, restore and shut down. Thread-safe.
class Place {
 public:
  void Put(std::int64_t changes, std::int64_t capacity, const std::string& key = "k") {
    const std::lock_guard lock(mutex_);
    StoredPolicy policy;
    policy.id = 1;
    policy.key = key;
    policy.version = changes;
    policy.capacity = capacity;
    all_ = {changes, {{key, policy}}};
  }
  void SetUp(bool up) {
    const std::lock_guard lock(mutex_);
    up_ = up;
  }
  /// The next change gets this number, and is the last one before the database goes down.
  void NumberNextChange(std::int64_t number) {
    const std::lock_guard lock(mutex_);
    next_change_ = number;
  }
  Result<Made> Make(const PolicyEdit& edit) {
    const std::lock_guard lock(mutex_);
    if (next_change_ == 0) return Error{Code::kUnimplemented, "not here"};
    up_ = false;
    return Made{next_change_, {.after = edit.wanted}};
  }
  /// Makes every Write wait until Release.
  void Hold() {
    const std::lock_guard lock(mutex_);
    held_ = true;
  }
  void Release() {
    const std::lock_guard lock(mutex_);
    held_ = false;
    released_.notify_all();
  }
  /// "unknown" stands for a write that gets no answer.
  Result<std::int64_t> Write(const std::string& target) {
    std::unique_lock lock(mutex_);
    ++writing_;
    released_.wait(lock, [this] { return !held_; });
    if (target == "unknown") return Error{Code::kDeadlineExceeded, "no answer"};
    written_.push_back(target);
    return static_cast<std::int64_t>(written_.size());
  }
  int writing() const {
    const std::lock_guard lock(mutex_);
    return writing_;
  }
  std::vector<std::string> written() const {
    const std::lock_guard lock(mutex_);
    return written_;
  }
  Result<Snapshot> Read() const {
    const std::lock_guard lock(mutex_);
    if (!up_) return Error{Code::kUnavailable, "connection refused"};
    return all_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable released_;
  bool up_ = true;
  bool held_ = false;
  int writing_ = 0;
  std::int64_t next_change_ = 0;
  std::vector<std::string> written_;
  Snapshot all_;
};

/// Reads a Place. Only the audit log is changed through it.
class Reader final : public Ledger {
 public:
  explicit Reader(Place& place) : place_(place) {}

  Status Migrate() override { return {}; }
  Result<std::int64_t> ReadChanges() override {
    const Result<Snapshot> all = place_.Read();
    if (!all.ok()) return all.error();
    return all->changes;
  }
  Result<Snapshot> ReadAll() override { return place_.Read(); }
  Result<Made> Make(const PolicyEdit& edit, const Catalog&) override { return place_.Make(edit); }
  Result<std::vector<PolicyChange>> ReadHistory(const std::string&, std::size_t) override {
    return No();
  }
  Result<std::int64_t> AppendEntry(const AuditEntry& entry) override {
    return place_.Write(entry.target);
  }
  Result<std::vector<AuditEntry>> ReadEntries(const AuditQuery&) override { return No(); }
  Result<AuditEntry> ReadEntry(std::int64_t) override { return No(); }
  Result<std::size_t> Trim(std::size_t, Nanos, std::size_t) override { return No(); }
  void Abort() noexcept override { place_.Release(); }

 private:
  static Error No() { return {Code::kUnimplemented, "not here"}; }
  Place& place_;
};

// Restored from a backup of change 3, then changed twice by others: 5 again, but a different 5.
TEST(SharedPolicyStore, ADatabaseThatWasRestoredWhileItWasDownIsReadAgainThoughItsCountIsTheSame) {
  Place place;
  place.Put(5, 10);
  Catalog catalog{CompileOptions{DefaultPolicy(), 0.1}};
  Options options;
  options.poll = std::chrono::milliseconds(1);
  auto store =
      SharedPolicyStore::Open(std::make_unique<Reader>(place), catalog, std::move(options));
  ASSERT_TRUE(store.ok());
  const auto limit = [&] { return catalog.live().Current()->ForKey("k").quota()->limit(); };
  ASSERT_EQ(limit(), 10);

  place.SetUp(false);
  ASSERT_TRUE(WaitUntil([&] { return !(*store)->health().up; }));
  place.Put(5, 20);
  place.SetUp(true);
  ASSERT_TRUE(WaitUntil([&] { return (*store)->health().up; }));
  EXPECT_EQ(limit(), 20);
}

// A replica that was behind has been promoted. Limits that were answered are gone: nobody would
// notice before they are missed.
TEST(SharedPolicyStore, ADatabaseThatGoesBackToAnOlderStateIsReportedOnce) {
  Place place;
  place.Put(5, 10, "late");
  Catalog catalog{CompileOptions{DefaultPolicy(), 0.1}};
  std::mutex mutex;
  std::vector<std::string> reports;
  Options options;
  options.poll = std::chrono::milliseconds(1);
  options.report = [&](std::string_view what, const std::string& why) {
    const std::lock_guard lock(mutex);
    reports.push_back(std::string(what) + ": " + why);
  };
  const auto limit = [&](const char* key) {
    return catalog.live().Current()->ForKey(key).quota()->limit();
  };
  auto store =
      SharedPolicyStore::Open(std::make_unique<Reader>(place), catalog, std::move(options));
  ASSERT_TRUE(store.ok());
  place.Put(3, 20, "k");
  ASSERT_TRUE(WaitUntil([&] { return limit("k") == 20; }));
  place.Put(4, 30, "k");
  ASSERT_TRUE(WaitUntil([&] { return limit("k") == 30; }));
  (*store)->Close();
  const std::lock_guard lock(mutex);
  EXPECT_THAT(reports, testing::ElementsAre(
                           "the policy database has gone back to an older state; policies are as "
                           "they were then: change 3 comes after 5; no longer in force: late; in "
                           "force again: k"));
}

// The change had number 7, since others had made two that this node had not read.
TEST(SharedPolicyStore, AChangeOfThisNodeThatIsLostIsReported) {
  Place place;
  place.Put(4, 10, "k");
  Catalog catalog{CompileOptions{DefaultPolicy(), 0.1}};
  std::mutex mutex;
  std::vector<std::string> reports;
  Options options;
  options.poll = std::chrono::milliseconds(1);
  options.report = [&](std::string_view, const std::string& why) {
    const std::lock_guard lock(mutex);
    reports.push_back(why);
  };
  auto store =
      SharedPolicyStore::Open(std::make_unique<Reader>(place), catalog, std::move(options));
  ASSERT_TRUE(store.ok());
  place.NumberNextChange(7);
  StoredPolicy late;
  late.key = "late";
  std::atomic<bool> made = false;
  (*store)->Change({.key = "late", .wanted = late},
                   [&](const Result<StoredPolicy>& policy) { made = policy.ok(); });
  ASSERT_TRUE(WaitUntil([&] { return made && !(*store)->health().up; }));
  place.Put(5, 10, "k");
  place.SetUp(true);
  ASSERT_TRUE(WaitUntil([&] { return (*store)->health().up; }));
  (*store)->Close();
  const std::lock_guard lock(mutex);
  EXPECT_THAT(reports, testing::Contains(testing::HasSubstr("change 5 comes after 7; ")));
}

// Not all that is lost is missing: a limit that was lowered is high again, and one that was deleted
// is back.
TEST(OlderState, WhatIsDifferentIsNamed) {
  StoredPolicy policy;
  policy.key = "pay";
  policy.version = 2;
  policy.capacity = 10;
  StoredPolicy older = policy;
  older.version = 1;
  older.capacity = 1000;
  const PolicyMap known = {{"gone", policy}, {"pay", policy}, {"same", policy}};
  const PolicyMap now = {{"pay", older}, {"same", policy}, {"x", policy}};
  EXPECT_EQ(
      DifferenceInWords(known, 7, {4, now}),
      "change 4 comes after 7; no longer in force: gone; changed back: pay; in force again: x");
  EXPECT_EQ(DifferenceInWords(known, 7, {4, known}),
            "change 4 comes after 7; the policies are the same");
}

TEST(SharedPolicyStore, WhatWasAskedForBeforeItIsClosedIsMade) {
  Place place;
  Catalog catalog{CompileOptions{DefaultPolicy(), 0.1}};
  Options options;
  options.at_end = std::chrono::minutes(2);
  auto store =
      SharedPolicyStore::Open(std::make_unique<Reader>(place), catalog, std::move(options));
  ASSERT_TRUE(store.ok());
  place.Hold();
  int answers = 0;  // used by the store's thread until it is closed
  for (const char* target : {"a", "b", "c"}) {
    (*store)->Append({.target = target},
                     [&](const Result<std::int64_t>& id) { answers += id.ok() ? 1 : 0; });
  }
  ASSERT_TRUE(WaitUntil([&] { return place.writing() == 1; }));
  std::thread closing([&] { (*store)->Close(); });
  // From then on it accepts nothing more.
  std::atomic<int> refused{0};
  EXPECT_TRUE(WaitUntil([&] {
    (*store)->FindEntry(1, [&](const Result<AuditEntry>& entry) {
      if (!entry.ok() && entry.error().code == Code::kUnavailable) ++refused;
    });
    return refused > 0;
  }));
  place.Release();
  closing.join();
  EXPECT_EQ(answers, 3);
  EXPECT_THAT(place.written(), ::testing::ElementsAre("a", "b", "c"));
}

TEST(SharedPolicyStore, WhatWasNotBegunIsNotUnknown) {
  Place place;
  Catalog catalog{CompileOptions{DefaultPolicy(), 0.1}};
  auto store = SharedPolicyStore::Open(std::make_unique<Reader>(place), catalog, {});
  ASSERT_TRUE(store.ok());
  place.Hold();
  std::vector<std::optional<Code>> told;  // used by the store's thread until it is closed
  const auto append = [&](const char* target) {
    (*store)->Append({.target = target}, [&](const Result<std::int64_t>& id) {
      told.push_back(id.ok() ? std::nullopt : std::optional(id.error().code));
    });
  };
  append("a");
  ASSERT_TRUE(WaitUntil([&] { return place.writing() == 1; }));
  append("unknown");  // these two are written together
  append("b");
  place.Release();
  (*store)->Close();
  EXPECT_THAT(told,
              ::testing::ElementsAre(std::nullopt, Code::kDeadlineExceeded, Code::kUnavailable));
}

TEST(SharedPolicyStore, ADatabaseThatHangsIsNotWaitedForWhenItIsClosed) {
  Place place;
  Catalog catalog{CompileOptions{DefaultPolicy(), 0.1}};
  Options options;
  options.at_end = std::chrono::milliseconds(0);
  auto store =
      SharedPolicyStore::Open(std::make_unique<Reader>(place), catalog, std::move(options));
  ASSERT_TRUE(store.ok());
  place.Hold();
  std::string told;
  (*store)->Append({.target = "a"}, [](const Result<std::int64_t>&) {});
  ASSERT_TRUE(WaitUntil([&] { return place.writing() == 1; }));
  (*store)->Append({.target = "b"}, [&](const Result<std::int64_t>& id) {
    told = id.ok() ? "" : id.error().message;
  });
  (*store)->Close();
  EXPECT_THAT(told, ::testing::HasSubstr("stopping"));
}

}  // namespace
}  // namespace weir::policy::shared
