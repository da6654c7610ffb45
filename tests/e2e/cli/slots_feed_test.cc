// A feed of payments that is damaged, or in an unexpected format: no line of it may become a
// different payment, and none may be skipped silently.

#include "e2e/cli/slots_feed_fixture.h"

namespace weir::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(SlotsFeed, ARowWithMoreOrFewerFieldsThanTheHeaderIsInvalid) {
  const RunResult run = Import("feed.csv",
                               "eventId,requestedTime,payload\n"
                               "comma,2030-06-03T09:00:00Z,12,50\n"
                               "short,2030-06-03T09:00:00Z\n"
                               "good,2030-06-03T09:00:00Z,\"12,50\"\n");
  EXPECT_EQ(run.exit_code, kSomeRefused) << run.output;
  EXPECT_THAT(run.output, HasSubstr("3 events: 1 new, 0 existing, 2 refused"));
  EXPECT_THAT(Results("feed.slots.csv"),
              AllOf(HasSubstr("INVALID: line 2: has 4 fields; the header has 3"),
                    HasSubstr("INVALID: line 3: has 2 fields; the header has 3")));
  EXPECT_EQ(StatusOf("comma"), 404);
  EXPECT_EQ(StatusOf("short"), 404);
  EXPECT_THAT(Client().Get("/api/v1/slots/good").body, HasSubstr(R"("payload":"12,50")"));
}

TEST_F(SlotsFeed, QuotesThatWouldBeLostAreInvalid) {
  const RunResult run = Import("feed.csv",
                               "eventId,payload\n"
                               "bare,{\"amount\":5}\n"
                               "after,\"5\"0\n"
                               "broken,\"two\n"
                               "lines\"\n"
                               "good,\"{\"\"amount\"\":5}\"\n");
  EXPECT_THAT(run.output, HasSubstr("5 events: 1 new, 0 existing, 4 refused"));
  EXPECT_THAT(run.error_output, HasSubstr(": INVALID: "));  // the first few immediately
  EXPECT_THAT(Results("feed.slots.csv"),
              AllOf(HasSubstr("a field with quotes in it must be quoted"),
                    // The events are named, so that they can be found in the feed.
                    HasSubstr("\nafter,"), HasSubstr("\nbroken,"), Not(HasSubstr("\nlines"))));
  EXPECT_THAT(Client().Get("/api/v1/slots/good").body, HasSubstr(R"("payload":"{\"amount\":5}")"));
}

// A letter as a payload: its second line has as many fields as a row.
TEST_F(SlotsFeed, TheLinesWithinAQuotedFieldAreNoPayments) {
  const RunResult run = Import("feed.csv",
                               "eventId,payload\n"
                               "letter,\"Dear\n"
                               "Sir,send 5\n"
                               "\"\"soon\"\",please\n"
                               "bye\"\n"
                               "lost\"quote,\"and\n"
                               "another,letter\n"
                               "ends\",\"here\"\n"
                               "good,5\n");
  EXPECT_EQ(run.exit_code, kSomeRefused) << run.output;
  EXPECT_THAT(run.output, HasSubstr("8 events: 1 new, 0 existing, 7 refused"));
  EXPECT_THAT(Results("feed.slots.csv"),
              AllOf(HasSubstr("line 3: belongs to a quoted field that line 2 leaves open"),
                    HasSubstr("line 5: belongs to a quoted field that line 2 leaves open"),
                    HasSubstr("line 7: belongs to a quoted field that line 6 leaves open")));
  EXPECT_EQ(StatusOf("Sir"), 404);
  EXPECT_EQ(StatusOf("another"), 404);
  EXPECT_EQ(StatusOf("good"), 200);
}

// The memory of a process can be opened, but not read from its beginning, like a file on a failing
// disk.
TEST_F(SlotsFeed, AFeedThatCannotBeReadIsNotTakenForItsBeginning) {
  for (const char* name : {"feed.csv", "feed.jsonl"}) {
    std::filesystem::create_symlink("/proc/self/mem", dir_ / name);
    const std::string feed = (dir_ / name).string();
    const RunResult run = Slots({"import", feed, "--config", "bank", "--at", kAt, "--quiet"});
    EXPECT_EQ(run.exit_code, kFailed) << run.output;
    EXPECT_THAT(run.error_output, HasSubstr(feed + ": cannot be read to its end"));
    EXPECT_FALSE(std::filesystem::exists(dir_ / "feed.slots.csv"));
    const RunResult assign = Slots({"assign", "--file", feed, "--config", "bank"});
    EXPECT_THAT(assign.error_output, HasSubstr(feed + ": cannot be read to its end"));
  }
}

TEST_F(SlotsFeed, AFolderIsNoFeed) {
  std::filesystem::create_directory(dir_ / "folder.csv");
  const std::string feed = (dir_ / "folder.csv").string();
  const RunResult run = Slots({"import", feed, "--config", "bank", "--at", kAt});
  EXPECT_EQ(run.exit_code, kUsage) << run.output;
  EXPECT_THAT(run.error_output, HasSubstr(feed + ": is a directory; expected a file"));
}

TEST_F(SlotsFeed, AColumnThatIsNearlyOneOfOursIsRefused) {
  for (const char* header :
       {"eventId,requestedtime", "eventId,requested_time", "eventId,Payload", "eventId, tenant",
        "eventId,config_name", "eventId,paylod", "eventId,requestTime", "eventId,PAYLAOD"}) {
    const RunResult run = Import("near.csv", std::string(header) + "\nx,y\n");
    EXPECT_EQ(run.exit_code, kUsage) << header;
    EXPECT_THAT(run.error_output, HasSubstr("; did you mean ")) << header;
  }
  EXPECT_THAT(Import("twice.csv", "eventId,payload,payload\nx,1,2\n").error_output,
              HasSubstr("column payload is there twice"));
  EXPECT_EQ(StatusOf("x"), 404);
}

TEST_F(SlotsFeed, AColumnThatIsNearOneThatIsThereIsIgnored) {
  const RunResult run = Import("feed.csv", "eventId,events,payload,payload2\nx,3,a,b\n");
  EXPECT_EQ(run.exit_code, kOk) << run.error_output;
  EXPECT_THAT(run.error_output, HasSubstr("ignored columns: events, payload2\n"));
}

TEST_F(SlotsFeed, ALineBreakInTheNameOfAFieldDoesNotBreakTheResults) {
  const RunResult run =
      Import("feed.jsonl", "{\"eventId\":\"a\",\"pay\\nload\":\"5\"}\n{\"eventId\":\"b\"}\n");
  EXPECT_EQ(run.exit_code, kSomeRefused) << run.error_output;
  EXPECT_THAT(run.output, HasSubstr("2 events: 1 new, 0 existing, 1 refused"));
  EXPECT_THAT(Results("feed.slots.csv"), HasSubstr("did you mean payload?"));
}

TEST_F(SlotsFeed, AMisspeltJsonFieldIsInvalidAndOthersAreNamedOnce) {
  const std::string text =
      "{\"eventId\":\"a\",\"paylod\":\"5\"}\n"
      "{\"eventId\":\"b\",\"payload\":null,\"paylods\":\"5\"}\n"
      "{\"eventId\":\"c\",\"branch\":\"Berlin\"}\n"
      "{\"eventId\":\"d\",\"payload\":\"5\",\"payload2\":\"6\",\"branch\":1}\n";
  const RunResult run = Import("feed.jsonl", text);
  EXPECT_EQ(run.exit_code, kSomeRefused) << run.output;
  EXPECT_THAT(run.output, HasSubstr("4 events: 2 new, 0 existing, 2 refused"));
  EXPECT_THAT(Results("feed.slots.csv"),
              AllOf(HasSubstr("line 1: unknown field paylod; did you mean payload?"),
                    HasSubstr("line 2: unknown field paylods; did you mean payload?")));
  EXPECT_THAT(run.error_output, HasSubstr("feed.jsonl: ignored fields: branch, payload2\n"));
  EXPECT_EQ(StatusOf("a"), 404);

  const std::string good =
      dir_.Write("good.jsonl", text.substr(text.find("{\"eventId\":\"c"))).string();
  EXPECT_THAT(Slots({"assign", "--file", good, "--config", "bank", "--at", kAt}).error_output,
              HasSubstr("ignored fields: branch, payload2\n"));
}

TEST_F(SlotsFeed, OtherColumnsAreIgnoredAndAByteOrderMarkIsNoPartOfAName) {
  const RunResult run = Import("excel.csv",
                               "\xEF\xBB\xBF"
                               "eventId,branch\r\nx,Berlin\r\n");
  EXPECT_EQ(run.exit_code, kOk) << run.error_output;
  EXPECT_THAT(run.error_output, HasSubstr("ignored columns: branch"));
  EXPECT_EQ(StatusOf("x"), 200);
}

TEST_F(SlotsFeed, AFeedWithoutTimesNeedsOneForAll) {
  const std::string feed = dir_.Write("feed.csv", "eventId\nx\ny\n").string();
  const RunResult none = Slots({"import", feed, "--config", "bank", "--quiet"});
  EXPECT_EQ(none.exit_code, kUsage) << none.output;
  EXPECT_EQ(
      none.error_output,
      "weir: " + feed + ": has no column requestedTime; add it, or give --at TIME or --at now\n");
  EXPECT_THAT(Slots({"import", feed, "--at", "now", "--quiet"}).error_output,
              HasSubstr("has no column configName; add it, or give --config"));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "feed.slots.csv"));
  EXPECT_EQ(StatusOf("x"), 404);
  const RunResult now = Slots({"import", feed, "--config", "bank", "--at", "now", "--quiet"});
  EXPECT_EQ(now.exit_code, kOk) << now.error_output;
  EXPECT_THAT(now.output, HasSubstr("2 events: 2 new"));
}

// All batches have the time at which the import began, and later ones would be refused.
TEST_F(SlotsFeed, NowIsRefusedForAConfigThatRefusesThePast) {
  ASSERT_EQ(Slots({"config", "set", "strict", "--window", "4s", "--max", "9", "--past", "refuse"})
                .exit_code,
            kOk);
  const std::string feed = dir_.Write("feed.csv", "eventId\nx\n").string();
  const RunResult now = Slots({"import", feed, "--config", "strict", "--at", "now", "--quiet"});
  EXPECT_EQ(now.exit_code, kUsage) << now.output;
  EXPECT_THAT(now.error_output,
              AllOf(HasSubstr("--at now: config 'strict' has past: refuse"),
                    HasSubstr("assign --file"), Not(HasSubstr("requested time:"))));
  EXPECT_EQ(StatusOf("x"), 404);
  EXPECT_EQ(Slots({"import", feed, "--config", "strict", "--at", kAt, "--quiet"}).exit_code, kOk);
}

TEST_F(SlotsFeed, AJsonFieldOfAnotherTypeIsInvalid) {
  const RunResult run = Import("feed.jsonl",
                               "{\"eventId\":\"a\",\"payload\":{\"amount\":5}}\n"
                               "{\"eventId\":\"b\",\"requestedTime\":1906707600000}\n"
                               "{\"eventId\":\"c\",\"tenant\":7}\n"
                               "{\"eventId\":\"d\",\"requestedtime\":\"2031-01-01T00:00:00Z\"}\n"
                               "{\"eventId\":\"e\",\"payload\":\"a\\u0000b\"}\n"
                               "{\"eventId\":\"f\",\"payload\":\"5\",\"payload\":\"50\"}\n"
                               "{\"eventId\":\"good\",\"payload\":null,\"branch\":3}\n");
  EXPECT_THAT(run.output, HasSubstr("7 events: 1 new, 0 existing, 6 refused"));
  EXPECT_THAT(Results("feed.slots.csv"),
              AllOf(HasSubstr("line 1: payload must be a string"),
                    HasSubstr("line 6: field payload is there twice"),
                    HasSubstr("line 2: requestedTime must be a string"),
                    HasSubstr("line 3: tenant must be a string"),
                    HasSubstr("line 4: unknown field requestedtime; did you mean requestedTime?"),
                    HasSubstr("line 5: payload must not contain")));
}

TEST_F(SlotsFeed, BytesThatAreNotTextAreInvalid) {
  const RunResult run = Import("feed.csv", "eventId,payload\na,\xff\xfe\ngood,\xc3\xa9\n");
  EXPECT_THAT(run.output, HasSubstr("2 events: 1 new, 0 existing, 1 refused"));
  EXPECT_THAT(Results("feed.slots.csv"), HasSubstr("payload must be UTF-8"));
}

TEST_F(SlotsFeed, AnInvalidLineHasNoTime) {
  Import("feed.csv", "eventId,requestedTime\na,soon\n");
  EXPECT_THAT(Results("feed.slots.csv"),
              AllOf(HasSubstr("a,bank,,,,,\"INVALID"), Not(HasSubstr("1970-"))));
}

TEST_F(SlotsFeed, ALineThatIsInConflictSaysWhy) {
  Import("feed.csv", "eventId,requestedTime\nz,2030-06-03T09:00:00Z\n");
  EXPECT_EQ(Slots({"reschedule", "z", "--at", "2030-06-04T10:00:00Z"}).exit_code, kOk);
  const std::string feed =
      "eventId,requestedTime\nz,2030-06-03T09:00:00Z\nn,2030-06-03T09:00:00Z\n";
  const RunResult run = Import("feed.csv", feed);
  EXPECT_EQ(run.exit_code, kSomeRefused);
  const std::string why =
      "CONFLICT: eventId: 'z' belongs to config 'bank' for 2030-06-04T10:00:00Z, scheduled for ";
  EXPECT_THAT(run.error_output, AllOf(HasSubstr("event z: " + why), HasSubstr("rescheduled")));
  EXPECT_THAT(Results("feed.slots.csv"), HasSubstr(why));
}

// It would be replaced by the results, which have no payloads.
TEST_F(SlotsFeed, TheFeedIsNotOverwrittenWithItsResults) {
  const std::string text = "eventId,payload\na,10 EUR\n";
  const std::string feed = dir_.Write("feed.csv", text).string();
  const RunResult run =
      Slots({"import", feed, "--config", "bank", "--at", kAt, "--quiet", "--out", feed});
  EXPECT_EQ(run.exit_code, kUsage) << run.output;
  EXPECT_THAT(run.error_output, HasSubstr("is the feed; give another file for the results"));
  EXPECT_EQ(Results("feed.csv"), text);
  EXPECT_EQ(StatusOf("a"), 404);
}

}  // namespace
}  // namespace weir::test
