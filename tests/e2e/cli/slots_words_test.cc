// weir slots against a running service: configs, slots, and the states of an event.

#include "e2e/cli/exit_codes.h"
#include "e2e/service/fixture.h"
#include "support/paths.h"

namespace weir::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kKey = "a-secret-of-tests";

class SlotsWords : public ServiceTest {
 protected:
  void SetUp() override { Serve({"--admin-key", kKey}); }

  RunResult Slots(std::vector<std::string> words, const std::string& key = kKey) {
    words.insert(words.begin(), {Program(), "slots"});
    return RunProgram(words, {.env = {"WEIR_URL=http://127.0.0.1:" + std::to_string(port_),
                                      "WEIR_ADMIN_KEY=" + key}});
  }
  RunResult Config(std::vector<std::string> words, const std::string& key = kKey) {
    words.insert(words.begin(), "config");
    return Slots(std::move(words), key);
  }
};

TEST_F(SlotsWords, ConfigsGoThroughTheirLife) {
  EXPECT_EQ(Config({"list", "--json"}).output, "{\"configs\":[]}\n");
  EXPECT_EQ(Config({"get", "bank"}).exit_code, kRefused);
  const RunResult made = Config({"set", "bank", "--window", "4s", "--max", "100"});
  ASSERT_EQ(made.exit_code, kOk) << made.error_output;
  EXPECT_THAT(made.output, AllOf(HasSubstr("bank"), HasSubstr("PT4S"), HasSubstr("active")));
  // Settings that are not given stay.
  ASSERT_EQ(Config({"set", "bank", "--tenant", "acme=3", "--tenant", "glo=bex=1"}).exit_code, kOk);
  const RunResult third = Config({"set", "bank", "--max", "200", "--headroom", "7", "--json"});
  ASSERT_EQ(third.exit_code, kOk) << third.error_output;
  EXPECT_THAT(third.output, StartsWith("{\"configName\":\"bank\",\"version\":3,"
                                       "\"windowSize\":\"PT4S\",\"maxPerWindow\":200,"
                                       "\"headroom\":7,"));
  EXPECT_THAT(third.output, HasSubstr("\"tenants\":{\"*\":1,\"acme\":3,\"glo=bex\":1}"));
  EXPECT_THAT(Config({"get", "bank"}).output, HasSubstr("*=1 acme=3 glo=bex=1"));
  EXPECT_THAT(Config({"set", "bank", "--no-tenants", "--json"}).output,
              Not(HasSubstr("\"tenants\"")));
  EXPECT_THAT(Config({"list"}).output, AllOf(HasSubstr("PT4S"), HasSubstr("200")));
  const std::string history = Config({"history", "bank"}).output;
  EXPECT_EQ(std::count(history.begin(), history.end(), '\n'), 1 + 4);  // header, four versions
  EXPECT_EQ(Config({"delete", "bank"}).output, "deleted bank; its assigned slots stay\n");
  EXPECT_EQ(Config({"delete", "bank"}).exit_code, kRefused);
  EXPECT_EQ(Config({"list", "--json"}).output, "{\"configs\":[]}\n");
}

TEST_F(SlotsWords, WhatIsWrongWithAConfigIsNamed) {
  const RunResult none = Config({"set", "bank", "--max", "100"});
  EXPECT_EQ(none.exit_code, kUsage);
  EXPECT_THAT(none.error_output, HasSubstr("give --window and --max"));
  EXPECT_THAT(Config({"set", "bank", "--window", "soon", "--max", "1"}).error_output,
              HasSubstr("--window soon: write a number with a unit"));
  EXPECT_THAT(Config({"set", "bank", "--window", "1us", "--max", "1"}).error_output,
              HasSubstr("--window 1us: write a number with a unit"));
  for (const char* tenant : {"acme", "=3", "acme=", "acme=many", "acme=-1"}) {
    const RunResult wrong =
        Config({"set", "bank", "--window", "4s", "--max", "1", "--tenant", tenant});
    EXPECT_EQ(wrong.exit_code, kUsage) << tenant;
    EXPECT_THAT(wrong.error_output, HasSubstr("--tenant must be like acme=3")) << tenant;
  }
  // The service's bound, known without it.
  const RunResult zero = Config({"set", "bank", "--window", "4s", "--max", "0"});
  EXPECT_EQ(zero.exit_code, kUsage);
  EXPECT_THAT(zero.error_output, HasSubstr("--max: expected a number from 1"));
  EXPECT_EQ(Config({"set", "bank", "--window", "4s", "--max", "1"}, "wrong").exit_code, kRefused);
  EXPECT_EQ(Config({"list", "--url", "http://127.0.0.1:1"}).exit_code, kUnreachable);
  EXPECT_EQ(Config({"list", "--json"}).output, "{\"configs\":[]}\n");  // nothing was created
}

TEST_F(SlotsWords, AnEventGetsASlotOrANo) {
  // Windows of an hour hold two, acme's share of each is floor(2 × 1 / 2) = 1, and a search goes
  // one window further, where shares still apply: acme runs out long before it has nine slots.
  ASSERT_EQ(Config({"set", "bank", "--window", "1h", "--max", "2", "--tenant", "acme=1",
                    "--headroom", "1", "--fair-windows", "9"})
                .exit_code,
            kOk);
  const std::vector<std::string> at = {"--config", "bank", "--at", "2025-06-01T12:00:00Z"};
  const auto assign = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "assign");
    words.insert(words.end(), at.begin(), at.end());
    return Slots(std::move(words));
  };
  const RunResult fresh = assign({"pay-1", "--tenant", "acme"});
  ASSERT_EQ(fresh.exit_code, kOk) << fresh.error_output;
  EXPECT_THAT(fresh.output,
              AllOf(HasSubstr("pay-1"), HasSubstr("NEW"), HasSubstr("2025-06-01T12:")));
  const std::string again = assign({"pay-1", "--tenant", "acme", "--json"}).output;
  EXPECT_THAT(again, AllOf(StartsWith("{\"eventId\":\"pay-1\",\"configName\":\"bank\","
                                      "\"tenant\":\"acme\",\"requestedTime\":"
                                      "\"2025-06-01T12:00:00Z\","),
                           HasSubstr("\"status\":\"EXISTING\"")));
  const RunResult richer = assign({"pay-1", "--tenant", "acme", "--payload", "20 EUR"});
  EXPECT_EQ(richer.exit_code, kRefused);
  EXPECT_THAT(richer.error_output, HasSubstr("'pay-1' belongs to an event with another payload"));
  EXPECT_THAT(assign({"pay-1"}).error_output, HasSubstr("'pay-1' belongs to tenant 'acme'"));
  int code = kOk;
  for (int i = 0; i < 8 && code == kOk; ++i) {
    code = assign({"more-" + std::to_string(i), "--tenant", "acme"}).exit_code;
  }
  EXPECT_EQ(code, kNo);
  EXPECT_EQ(assign({"other"}).exit_code, kOk);  // without a tenant
  EXPECT_EQ(Slots({"assign", "x", "--config", "no-such"}).exit_code, kRefused);
  EXPECT_EQ(Slots({"assign", "x", "--config", "bank"}).exit_code, kOk);  // now
  EXPECT_EQ(Slots({"assign", "x"}).exit_code, kUsage);
  EXPECT_EQ(Slots({"assign", "--config", "bank"}).exit_code, kUsage);
  EXPECT_EQ(Slots({"assign", "x", "--config", "bank", "--at", "soon"}).exit_code, kUsage);
}

TEST_F(SlotsWords, AFileOfEventsIsAssignedAtOnceOrNotAtAll) {
  ASSERT_EQ(Config({"set", "bank", "--window", "1h", "--max", "10"}).exit_code, kOk);
  const auto file = [&](const char* name, const std::string& text) {
    return dir_.Write(name, text).string();
  };
  const std::string feed = file("feed.csv", "eventId,configName\na,\nb,\nc,no-such\n");
  const std::vector<std::string> words = {
      "assign", "--config", "bank", "--at", "2025-06-01T12:00:00Z", "--file"};
  const auto assign = [&](const std::string& path, bool json = false) {
    std::vector<std::string> all = words;
    all.push_back(path);
    if (json) all.emplace_back("--json");
    return Slots(all);
  };
  const RunResult mixed = assign(feed);
  EXPECT_EQ(mixed.exit_code, kNo) << mixed.error_output;  // one got no slot
  EXPECT_THAT(mixed.output, AllOf(HasSubstr("a      NEW "), HasSubstr("UNKNOWN_CONFIG")));
  const RunResult two =
      assign(file("two.jsonl", "{\"eventId\":\"a\"}\n{\"eventId\":\"d\"}\n"), true);
  EXPECT_EQ(two.exit_code, kOk) << two.error_output;
  EXPECT_THAT(two.output, StartsWith("{\"slots\":[{\"eventId\":\"a\""));
  EXPECT_LT(two.output.find("EXISTING"), two.output.find("\"NEW\""));

  const RunResult wrong = assign(file("wrong.jsonl", "{\"eventId\":\"e\"}\n{}\n"));
  EXPECT_EQ(wrong.exit_code, kUsage);
  EXPECT_THAT(wrong.error_output, HasSubstr("wrong.jsonl: line 2: eventId"));
  // So the first was not requested either.
  EXPECT_EQ(Client().Get("/api/v1/slots/e", {{"X-API-Key", kKey}}).status, 404);
  std::string many = "eventId\n";
  for (int i = 0; i <= 10'000; ++i) many += "m" + std::to_string(i) + "\n";
  EXPECT_THAT(assign(file("many.csv", many)).error_output, HasSubstr("weir slots import"));
  EXPECT_EQ(assign(file("none.csv", "eventId\n")).exit_code, kUsage);
  EXPECT_EQ(assign("/no/such.csv").exit_code, kUsage);
}

// These names are also paths of the API.
TEST_F(SlotsWords, ForecastsAndImportsFailAsOtherCommandsDo) {
  const std::vector<std::string> forecast = {"forecast", "--config", "none", "--count",
                                             "1",        "--at",     "now"};
  const auto forecast_with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), forecast.begin(), forecast.end());
    return Slots(more);
  };
  const RunResult unknown = forecast_with({});
  EXPECT_EQ(unknown.exit_code, kRefused);
  EXPECT_THAT(unknown.error_output, StartsWith("weir: 404: "));
  EXPECT_EQ(forecast_with({"--url", "http://127.0.0.1:1"}).exit_code, kUnreachable);
  EXPECT_EQ(forecast_with({"--key-file", "/no/such"}).exit_code, kUsage);
  const RunResult wrong = forecast_with({"--key", "wrong"});
  EXPECT_EQ(wrong.exit_code, kRefused);
  EXPECT_THAT(wrong.error_output,
              AllOf(StartsWith("weir: 401: "), HasSubstr("(--key-file FILE, or WEIR_ADMIN_KEY)")));
  EXPECT_EQ(Slots({"import", "/no/such.csv", "--config", "none"}).exit_code, kUsage);
}

TEST_F(SlotsWords, AnEventWithTheNameOfACallCanBeCancelled) {
  ASSERT_EQ(Config({"set", "bank", "--window", "4s", "--max", "10"}).exit_code, kOk);
  for (const char* event : {"due", "claim", "batch", "done", "failed"}) {
    ASSERT_EQ(Slots({"assign", event, "--config", "bank"}).exit_code, kOk);
    EXPECT_THAT(Slots({"show", event}).output, HasSubstr("SCHEDULED"));
    const std::string later = "2031-06-02T09:00:00Z";
    EXPECT_THAT(Slots({"reschedule", event, "--at", later}).output, HasSubstr("2031-06-02"));
    EXPECT_THAT(Slots({"cancel", event}).output, HasSubstr("CANCELLED")) << event;
  }
}

TEST_F(SlotsWords, AnEventIsFoundCancelledRestoredMovedAndListed) {
  ASSERT_EQ(Config({"set", "bank", "--window", "4s", "--max", "10"}).exit_code, kOk);
  const std::string feed = dir_.Write("feed.csv", "eventId\npay-1\npay-2\n").string();
  const auto import = [&](const char* config, const char* at) {
    return Slots({"import", feed, "--config", config, "--at", at, "--quiet"});
  };
  constexpr const char* kNine = "2025-06-01T09:00:00Z";
  ASSERT_EQ(import("bank", kNine).exit_code, kOk);
  EXPECT_THAT(Slots({"cancel", "pay-1"}).output, HasSubstr("CANCELLED"));
  EXPECT_EQ(Slots({"cancel", "nobody"}).exit_code, kRefused);
  const RunResult again = import("bank", kNine);
  EXPECT_EQ(again.exit_code, kOk);
  EXPECT_THAT(again.output, HasSubstr("1 existing, 0 refused, 1 cancelled"));
  for (const char* config : {"bank", "no-such"}) {  // another time; a config that does not exist
    const RunResult other = import(config, "2025-06-01T10:00:00Z");
    EXPECT_EQ(other.exit_code, 3);
    EXPECT_THAT(other.output, HasSubstr("0 new, 0 existing, 0 refused, 2 in conflict"));
  }
  dir_.Write("feed.csv", "eventId,payload\npay-1,20 EUR\npay-2,20 EUR\n");
  const RunResult changed = import("bank", kNine);
  EXPECT_EQ(changed.exit_code, 3);
  EXPECT_THAT(changed.output, HasSubstr("0 new, 0 existing, 0 refused, 2 in conflict"));
  dir_.Write("feed.csv", "eventId\npay-1\npay-2\n");
  EXPECT_THAT(Slots({"show", "pay-1"}).output,
              AllOf(StartsWith("eventId "), HasSubstr("CANCELLED"),
                    HasSubstr("cancelled from 2025-06-01T09:00:0")));
  EXPECT_EQ(Slots({"reschedule", "pay-1", "--at", kNine}).exit_code, kRefused);
  EXPECT_EQ(Slots({"restore", "pay-1"}).exit_code, kOk);
  EXPECT_THAT(Slots({"reschedule", "pay-1", "--at", "2025-06-02T09:00:00Z"}).output,
              HasSubstr("2025-06-02T09:00:0"));
  EXPECT_EQ(Slots({"reschedule", "pay-1", "--at", "soon"}).exit_code, kUsage);

  const RunResult due = Slots({"due", "--config", "bank"});
  EXPECT_LT(due.output.find("pay-2"), due.output.find("pay-1")) << due.output;
  EXPECT_THAT(Slots({"due", "--config", "bank", "--before", "2025-06-02T00:00:00Z"}).output,
              Not(HasSubstr("pay-1")));
  EXPECT_THAT(Slots({"due", "--config", "bank", "--state", "DONE"}).output, Not(HasSubstr("pay")));
  const RunResult unknown = Slots({"due", "--config", "no-such"});
  EXPECT_EQ(unknown.exit_code, kRefused);
  EXPECT_THAT(unknown.error_output, HasSubstr("there is no config 'no-such'"));
  EXPECT_THAT(Slots({"status"}).output,
              AllOf(HasSubstr("caught up by"), HasSubstr(" 2  2025-06-01T09:00:0")));
  const RunResult audit = RunProgram({Program(), "audit"},
                                     {.env = {"WEIR_URL=http://127.0.0.1:" + std::to_string(port_),
                                              std::string("WEIR_ADMIN_KEY=") + kKey}});
  EXPECT_THAT(audit.output, AllOf(HasSubstr("slot.cancel"), HasSubstr("slot.restore"),
                                  HasSubstr("slot.reschedule")));
}

}  // namespace
}  // namespace weir::test
