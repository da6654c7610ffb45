// An import that is interrupted and run again: what was answered is skipped, and only that.

#include "e2e/cli/slots_feed_fixture.h"

namespace weir::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using SlotsResume = SlotsFeed;

TEST_F(SlotsResume, AnInterruptedImportGoesOnBehindALineBreakInAnId) {
  const char* const text = R"({"eventId":"a\nb","configName":"c\nd"}
{"eventId":"ok"}
)";
  Interrupt("feed.jsonl", text, 2);
  const RunResult again = Import("feed.jsonl", text);
  EXPECT_EQ(again.exit_code, kSomeRefused) << again.error_output;
  EXPECT_THAT(again.output, HasSubstr("2 were answered before"));
  EXPECT_THAT(Results("feed.slots.csv"),
              HasSubstr("\na\\nb,c\\nd,,,,,INVALID: line 1: eventId must be UTF-8"));
}

TEST_F(SlotsResume, AnInterruptedImportGoesOnAfterItsLastAnswer) {
  const std::string feed =
      "eventId,requestedTime\n\"a,1\",2030-06-03T09:00:00Z\nbad,soon\nc,2030-06-03T09:00:00Z\n";
  Interrupt("feed.csv", feed, 2);
  const RunResult run = Import("feed.csv", feed);
  EXPECT_EQ(run.exit_code, kSomeRefused) << run.error_output;
  EXPECT_THAT(run.output, HasSubstr("3 events: 1 new, 1 existing, 1 refused (of these, 2 were "
                                    "answered before the interruption); results in "));
  EXPECT_EQ(StatusOf("c"), 200);
  EXPECT_THAT(Results("feed.slots.csv"),
              AllOf(HasSubstr("eventId,configName,"), HasSubstr("\n\"a,1\",bank,2030"),
                    HasSubstr("\nbad,bank,,"), HasSubstr("\nc,bank,2030")));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "feed.slots.csv.part"));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "feed.slots.csv.tmp"));
}

TEST_F(SlotsResume, ConflictsBeforeTheInterruptionCount) {
  Import("feed.csv", "eventId,payload\nz,1\n");
  std::filesystem::remove(dir_ / "feed.slots.csv");
  const std::string feed = "eventId,payload\nz,2\nn,1\n";
  Interrupt("feed.csv", feed, 1);
  const RunResult run = Import("feed.csv", feed);
  EXPECT_EQ(run.exit_code, kSomeRefused);
  EXPECT_THAT(run.output, HasSubstr("2 events: 0 new, 1 existing, 0 refused, 1 in conflict (of "
                                    "these, 1 was answered before the interruption)"));
}

// An import that is continued must be the one that was begun: a row, a time or a config that was
// changed meanwhile would be reported as done.
class SlotsInterrupted : public SlotsFeed {
 protected:
  void SetUp() override {
    SlotsFeed::SetUp();
    Interrupt("feed.csv", kFeed, 1);
  }
  void ExpectRefused(const RunResult& run, const std::string& why) {
    EXPECT_EQ(run.exit_code, kUsage) << run.output;
    EXPECT_THAT(run.error_output, HasSubstr(why));
    EXPECT_FALSE(std::filesystem::exists(dir_ / "feed.slots.csv"));
    // Nothing is lost: the import that was begun can go on.
    EXPECT_THAT(Import("feed.csv", kFeed).output, HasSubstr("1 was answered before"));
  }
  static constexpr const char* kFeed = "eventId,payload\na,1\nb,2\n";
};

TEST_F(SlotsInterrupted, ARowThatWasChangedSinceIsRefused) {
  ExpectRefused(Import("feed.csv", "eventId,payload\na,CHANGED\nb,2\n"),
                "feed.csv: line 2, event a: has changed since the interrupted import answered it. "
                "Restore the line to continue, or delete " +
                    (dir_ / "feed.slots.csv.part").string() + " to import the changed feed");
}

TEST_F(SlotsInterrupted, ColumnsThatWereSwappedSinceAreRefused) {
  ExpectRefused(Import("feed.csv", "eventId,tenant\na,1\nb,2\n"), "line 2, event a: has changed");
}

TEST_F(SlotsInterrupted, AChangedFeedCanBeStartedOver) {
  std::filesystem::remove(dir_ / "feed.slots.csv.part");
  const RunResult run = Import("feed.csv", "eventId,payload\na,CHANGED\nb,2\nc,3\n");
  EXPECT_EQ(run.exit_code, kSomeRefused);
  EXPECT_THAT(run.output, HasSubstr("3 events: 1 new, 1 existing, 0 refused, 1 in conflict; "));
}

TEST_F(SlotsInterrupted, ALineThatWasAddedBeforeIsRefused) {
  ExpectRefused(Import("feed.csv", "eventId,payload\nnew,0\na,1\nb,2\n"),
                "line 2 is about a, and the feed has new; it belongs to another feed, or lines "
                "were added or removed, so delete this file to start over");
  EXPECT_EQ(StatusOf("new"), 404) << "nothing is done before that is decided";
}

TEST_F(SlotsInterrupted, AnotherConfigTimeOrStoreIsRefused) {
  ASSERT_EQ(Slots({"config", "set", "other", "--window", "4s", "--max", "100"}).exit_code, kOk);
  const std::string feed = (dir_ / "feed.csv").string();
  ExpectRefused(Slots({"import", feed, "--config", "other", "--at", kAt, "--quiet"}),
                "begun with --config bank, and this one has --config other. Give the same");
  std::filesystem::remove(dir_ / "feed.slots.csv");
  Interrupt("feed.csv", kFeed, 1);
  ExpectRefused(Slots({"import", feed, "--config", "bank", "--at", "2030-06-03T10:00:00Z"}),
                "begun with --at 2030-06-03T09:00:00Z, and this one has --at 2030-06-03T10:00:00Z");
  std::filesystem::remove(dir_ / "feed.slots.csv");
  Interrupt("feed.csv", kFeed, 1);
  const std::string store = "sqlite:" + (dir_ / "new.db").string();
  ExpectRefused(
      Slots({"import", feed, "--config", "bank", "--at", kAt, "--store", store}),
      "begun with http://127.0.0.1:" + std::to_string(port_) + ", and this one has " + store);
}

// It has no digests.
TEST_F(SlotsResume, AnInterruptedImportOfAnEarlierVersionIsRefused) {
  dir_.Write("feed.slots.csv.part",
             "eventId,configName,requestedTime,scheduledTime,windowStart,delayMs,status\n"
             "a,bank,2030-06-03T09:00:00Z,2030-06-03T09:00:01Z,2030-06-03T09:00:00Z,1,NEW\n");
  const RunResult run = Import("feed.csv", "eventId\na\nb\n");
  EXPECT_EQ(run.exit_code, kUsage) << run.output;
  EXPECT_THAT(run.error_output, AllOf(HasSubstr("was written by another version of weir"),
                                      HasSubstr("delete this file to start over")));
  EXPECT_EQ(StatusOf("b"), 404);
}

}  // namespace
}  // namespace weir::test
