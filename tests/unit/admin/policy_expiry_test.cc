#include "admin/policy_expiry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "admin/policy_store.h"

namespace weir::admin {
namespace {

using policy::StoredPolicy;

/// Policies that end in an hour; the test decides when their histories are answered.
class SlowStore final : public policy::PolicyStore {
 public:
  explicit SlowStore(int policies) {
    for (int i = 0; i < policies; ++i) {
      StoredPolicy policy;
      policy.key = "k" + std::to_string(i);
      policy.version = 1;
      policy.expires_at = kEnd;
      all_.push_back(std::move(policy));
    }
  }

  static constexpr Nanos kEnd = Nanos{3600} * 1'000'000'000;

  void AnswerAll() {
    for (const HistoryDone& done : std::exchange(asked_, {})) {
      done(std::vector<policy::PolicyChange>());
    }
  }
  std::size_t under_way() const { return asked_.size(); }
  std::size_t reads() const { return reads_; }

  Page List(std::string_view, std::size_t) const override { return {all_, all_.size(), ""}; }
  void History(std::string, std::size_t, HistoryDone done) override {
    ++reads_;
    asked_.push_back(std::move(done));
  }

  void Change(policy::PolicyEdit, Done) override {}
  Result<StoredPolicy> Get(std::string_view key) const override {
    return policy::NoSuchPolicy(key);
  }
  weir::Status EndHere(const StoredPolicy&, std::optional<StoredPolicy>) override { return {}; }
  void Append(policy::AuditEntry, Appended) override {}
  void ListEntries(policy::AuditQuery, Listed) override {}
  void FindEntry(std::int64_t, Found) override {}
  void Trim(std::size_t, Nanos, std::size_t, Trimmed) override {}

 private:
  std::vector<StoredPolicy> all_;
  std::vector<HistoryDone> asked_;
  std::size_t reads_ = 0;
};

TEST(PolicyExpiry, AReadThatIsUnderWayIsNotMadeAgain) {
  SlowStore store(250);
  policy::Catalog catalog{policy::CompileOptions{policy::DefaultPolicy(), 0.1}};
  const auto expiry = std::make_shared<PolicyExpiry>(store, catalog);
  for (Nanos second = 1; second <= 5; ++second) expiry->EndExpired(second * 1'000'000'000);
  EXPECT_EQ(store.reads(), 100U) << "so many at a time, others wait for the database, too";
  store.AnswerAll();
  expiry->EndExpired(6'000'000'000);
  EXPECT_EQ(store.under_way(), 100U);
  store.AnswerAll();
  for (Nanos second = 7; second <= 9; ++second) {
    expiry->EndExpired(second * 1'000'000'000);
    store.AnswerAll();
  }
  EXPECT_EQ(store.reads(), 250U) << "one of each";
}

}  // namespace
}  // namespace weir::admin
