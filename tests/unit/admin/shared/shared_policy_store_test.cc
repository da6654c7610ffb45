#include "admin/shared/shared_policy_store.h"

#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "support/wait.h"

namespace weir::policy::shared {
namespace {

using test::WaitUntil;

/// A database that others change, restore and take down. Thread-safe.
class Place {
 public:
  void Put(std::int64_t changes, std::int64_t capacity) {
    const std::lock_guard lock(mutex_);
    StoredPolicy policy;
    policy.id = 1;
    policy.key = "k";
    policy.version = changes;
    policy.capacity = capacity;
    all_ = {changes, {{"k", policy}}};
  }
  void SetUp(bool up) {
    const std::lock_guard lock(mutex_);
    up_ = up;
  }
  Result<Snapshot> Read() const {
    const std::lock_guard lock(mutex_);
    if (!up_) return Error{Code::kUnavailable, "connection refused"};
    return all_;
  }

 private:
  mutable std::mutex mutex_;
  bool up_ = true;
  Snapshot all_;
};

/// Reads a Place. Nothing is changed through it.
class Reader final : public Ledger {
 public:
  explicit Reader(const Place& place) : place_(place) {}

  Status Migrate() override { return {}; }
  Result<std::int64_t> ReadChanges() override {
    const Result<Snapshot> all = place_.Read();
    if (!all.ok()) return all.error();
    return all->changes;
  }
  Result<Snapshot> ReadAll() override { return place_.Read(); }
  Result<Made> Make(const PolicyEdit&, const Catalog&) override { return No(); }
  Result<std::vector<PolicyChange>> ReadHistory(const std::string&, std::size_t) override {
    return No();
  }
  Result<std::int64_t> AppendEntry(const AuditEntry&) override { return No(); }
  Result<std::vector<AuditEntry>> ReadEntries(const AuditQuery&) override { return No(); }
  Result<AuditEntry> ReadEntry(std::int64_t) override { return No(); }
  Result<std::size_t> Trim(std::size_t, Nanos, std::size_t) override { return No(); }

 private:
  static Error No() { return {Code::kUnimplemented, "not here"}; }
  const Place& place_;
};

// Restored from a backup of change 3, then changed twice by others: 5 again, but another 5.
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

}  // namespace
}  // namespace weir::policy::shared
