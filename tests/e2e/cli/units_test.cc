// Every interface has a unit of its own (minutes, seconds, ISO 8601), and every interface accepts
// the others if they are written out: two minutes are two minutes everywhere.

#include "e2e/cli/exit_codes.h"
#include "e2e/service/fixture.h"
#include "support/paths.h"

namespace weir::test {
namespace {

using ::testing::HasSubstr;

class Units : public ServiceTest {
 protected:
  RunResult Weir(std::vector<std::string> words) {
    words.insert(words.begin(), Program());
    return RunProgram(words, {.env = {"WEIR_URL=http://127.0.0.1:" + std::to_string(port_)}});
  }
  HttpResponse Post(const std::string& path, const std::string& body) {
    return HttpClient(port_).Post(path, body);
  }
};

const std::vector<std::string> kTwoMinutes = {"2m",   "120s",   "120000ms", "1m60s",
                                              "PT2M", "PT120S", "PT1M60.0S"};

TEST_F(Units, PoliciesTakeSecondsAndEveryUnit) {
  Serve({});
  int number = 0;
  std::vector<std::string> all = {"120"};
  for (const std::string& text : kTwoMinutes) all.push_back('"' + text + '"');
  for (const std::string& text : all) {
    const std::string key = "user-" + std::to_string(++number);
    const HttpResponse made =
        Post("/admin/policies", R"({"key":")" + key +
                                    R"(","type":"SLIDING_WINDOW","capacity":5,"windowSeconds":)" +
                                    text + "}");
    EXPECT_EQ(made.status, 201) << made.body;
    EXPECT_THAT(made.body, HasSubstr(R"("windowSeconds":120,)")) << text;
  }
  // A number in quotes has no unit.
  EXPECT_EQ(Post("/admin/policies",
                 R"({"key":"u","type":"SLIDING_WINDOW","capacity":5,"windowSeconds":"120"})")
                .status,
            400);
}

TEST_F(Units, NotifyTakesMinutesAndEveryUnit) {
  Serve({});
  std::vector<std::string> all = {"2"};
  for (const std::string& text : kTwoMinutes) all.push_back('"' + text + '"');
  for (const std::string& text : all) {
    const HttpResponse made =
        Post("/api/config", R"({"userId":"42","rateLimit":3,"timeWindow":)" + text + "}");
    EXPECT_EQ(made.status, 200) << made.body;
    EXPECT_THAT(made.body, HasSubstr(R"("timeWindow":2,)")) << text;
  }
  for (const std::string& text : kTwoMinutes) {
    EXPECT_EQ(Weir({"notify", "config", "42", "--limit", "3", "--window", text}).exit_code, kOk)
        << text;
  }
}

TEST_F(Units, SlotsTakeIsoAndEveryUnit) {
  Serve({});
  for (const std::string& text : kTwoMinutes) {
    const HttpResponse made =
        Post("/admin/rate-limit/config",
             R"({"configName":"c","maxPerWindow":10,"windowSize":")" + text + R"("})");
    EXPECT_EQ(made.status, 201) << made.body;
    EXPECT_THAT(made.body, HasSubstr(R"("windowSize":"PT2M")")) << text;
    EXPECT_EQ(Weir({"slots", "config", "set", "c", "--window", text, "--max", "10"}).exit_code, kOk)
        << text;
  }
}

TEST_F(Units, FilesAndFlagsTakeEveryUnit) {
  Serve({});
  for (const std::string& text : kTwoMinutes) {
    const auto policies =
        dir_.Write("units.yaml",
                   "policies:\n  - {name: p, match: {user: \"*\"}, quota: {sliding_log: {limit: 5, "
                   "window: " +
                       text + "}}}\n");
    const auto settings =
        dir_.Write("weir.yaml", "limits: {idle_timeout: " + text + "}\nstore_timeout: PT0.25S\n");
    const RunResult checked = Weir({"config", "check", policies.string(), settings.string()});
    EXPECT_EQ(checked.exit_code, kOk) << checked.error_output;
    EXPECT_EQ(Weir({"check", "user-1", "--timeout", text}).exit_code, kOk) << text;
  }
  // Seconds, as before.
  EXPECT_EQ(Weir({"check", "user-1", "--timeout", "1.5"}).exit_code, kOk);
  EXPECT_EQ(Weir({"check", "user-1", "--timeout", "2 parsecs"}).exit_code, kUsage);
  EXPECT_EQ(Weir({"top", "--once", "--interval", "500ms"}).exit_code, kOk);
}

}  // namespace
}  // namespace weir::test
