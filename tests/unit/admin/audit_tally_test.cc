#include "admin/audit_tally.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/log_capture.h"

namespace weir::admin {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Records entries as "who action target count".
class Log final : public policy::AuditLog {
 public:
  void Append(policy::AuditEntry entry, Appended done) override {
    if (fails) return done(Error{*fails, "not now"});
    lines.push_back(entry.who + " " + entry.action + " " + entry.target + " " + entry.after);
    done(static_cast<std::int64_t>(lines.size()));
  }
  void ListEntries(policy::AuditQuery, Listed) override {}
  void FindEntry(std::int64_t, Found) override {}
  void Trim(std::size_t, Nanos, std::size_t, Trimmed) override {}

  std::vector<std::string> Take() { return std::exchange(lines, {}); }
  std::vector<std::string> lines;
  std::optional<Code> fails;
};

class AuditTallyTest : public ::testing::Test {
 protected:
  void Flush(int seconds) {
    for (int i = 0; i < seconds; ++i) tally_.Flush();
  }

  Log log_;
  AuditTally tally_{log_};
};

TEST_F(AuditTallyTest, TheFirstIsWrittenAtOnceAndWhatFollowsOnceAMinute) {
  tally_.Note("ann", "notify.send", "a", 2);
  Flush(1);
  EXPECT_THAT(log_.Take(), ElementsAre(R"(ann notify.send a {"count":2})"));
  for (int second = 0; second < 59; ++second) {
    tally_.Note("ann", "notify.send", "b", 1);
    Flush(1);
  }
  EXPECT_THAT(log_.Take(), IsEmpty());
  Flush(1);
  EXPECT_THAT(log_.Take(), ElementsAre(R"(ann notify.send b {"count":59})"));
}

TEST_F(AuditTallyTest, AfterAQuietMinuteTheNextIsTheFirst) {
  tally_.Note("ann", "notify.send", "a", 1);
  Flush(1 + 60);
  EXPECT_EQ(log_.Take().size(), 1U);
  tally_.Note("ann", "notify.send", "a", 1);
  Flush(1);
  EXPECT_EQ(log_.Take().size(), 1U);
}

TEST_F(AuditTallyTest, NothingIsLostAtTheEnd) {
  tally_.Note("ann", "notify.send", "a", 1);
  Flush(1);
  tally_.Note("ann", "notify.send", "a", 3);
  tally_.Note("bob", "slot.claim", "pay", 5);
  log_.Take();
  tally_.FlushAll();
  EXPECT_THAT(log_.Take(),
              ElementsAre(R"(ann notify.send a {"count":3})", R"(bob slot.claim pay {"count":5})"));
  tally_.FlushAll();
  EXPECT_THAT(log_.Take(), IsEmpty());
}

TEST_F(AuditTallyTest, WhatTheLogDidNotTakeIsWrittenAMinuteLater) {
  log_.fails = Code::kUnavailable;
  tally_.Note("ann", "notify.send", "a", 2);
  Flush(1);
  log_.fails.reset();
  tally_.Note("ann", "notify.send", "b", 1);
  Flush(60);
  EXPECT_THAT(log_.Take(), ElementsAre(R"(ann notify.send a {"count":3})"));
  Flush(120);
  EXPECT_THAT(log_.Take(), IsEmpty());
}

TEST_F(AuditTallyTest, WhatTheLogMayHaveTakenIsNotWrittenTwice) {
  log_.fails = Code::kDeadlineExceeded;
  tally_.Note("ann", "notify.send", "a", 2);
  Flush(1);
  log_.fails.reset();
  tally_.Note("ann", "notify.send", "b", 1);
  Flush(60);
  EXPECT_THAT(log_.Take(), ElementsAre(R"(ann notify.send b {"count":1})"));
}

TEST_F(AuditTallyTest, WhatIsLostAtTheEndIsInTheServicesLog) {
  log_.fails = Code::kUnavailable;
  tally_.Note("ann", "notify.send", "a", 2);
  test::LogCapture log;
  tally_.FlushAll();
  const std::string told = log.Take();
  for (const char* part : {"lost", "ann", "notify.send", "2"}) {
    EXPECT_THAT(told, ::testing::HasSubstr(part));
  }
}

TEST_F(AuditTallyTest, ManyCallersGoTogetherAndKnownOnesKeepTheirNames) {
  for (std::size_t i = 0; i < AuditTally::kCallers + 10; ++i) {
    tally_.Note("caller" + std::to_string(i), "notify.send", "", 1);
  }
  tally_.Note("caller0", "notify.send", "", 1);
  Flush(1);
  EXPECT_EQ(log_.lines.size(), AuditTally::kCallers + 1);
  EXPECT_THAT(log_.lines, ::testing::Contains(R"(others notify.send  {"count":10})"));
  EXPECT_THAT(log_.lines, ::testing::Contains(R"(caller0 notify.send  {"count":2})"));
}

}  // namespace
}  // namespace weir::admin
