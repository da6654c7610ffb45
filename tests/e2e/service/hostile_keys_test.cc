// Keys come from clients and may contain anything: operators can still find, explain and reset
// them.

#include "e2e/service/fixture.h"

namespace weir::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct Hostile {
  const char* json;     ///< as in JSON, in a check and in answers
  const char* escaped;  ///< percent-encoded
};

constexpr Hostile kKeys[] = {
    {"line\\nfeed", "line%0Afeed"},
    {"\\u001b]0;title\\u0007", "%1B%5D0%3Btitle%07"},
    {"nul\\u0000inside", "nul%00inside"},
    {"\\\"quotes' & <script>", "%22quotes%27%20%26%20%3Cscript%3E"},
    {"a/b|c%d?e#f", "a%2Fb%7Cc%25d%3Fe%23f"},
    {"bidi \\u202eevil", "bidi%20%E2%80%AEevil"},
};

class HostileKeys : public ServiceTest {
 protected:
  void SetUp() override {
    Serve({"--policies", dir_.Write("p.yaml",
                                    "policies: [{name: u, match: {user: \"*\"}, quota: "
                                    "{fixed_window: {limit: 9, window: 100d}}}]")
                             .string()});
  }
};

TEST_F(HostileKeys, AreFoundExplainedListedAndReset) {
  HttpClient client = Client();
  for (const Hostile& key : kKeys) {
    const std::string name = key.json;
    const std::string path = key.escaped;
    ASSERT_EQ(Check("{\"key\":\"" + name + "\",\"cost\":40}").status, 200) << name;
    // 100 is the default capacity; at most a second's refill of 10 is added in the meantime.
    const HttpResponse found = client.Get("/admin/metrics/" + path);
    EXPECT_EQ(found.status, 200) << name;
    EXPECT_THAT(found.body, AllOf(StartsWith("{\"key\":\"" + name + "\""), HasSubstr(":6")));
    const HttpResponse why = client.Get("/admin/explain?key=" + path);
    EXPECT_EQ(why.status, 200) << name;
    EXPECT_THAT(why.body, HasSubstr("\"allowed\":true"));
    EXPECT_THAT(client.Get("/admin/metrics").body, HasSubstr("\"key\":\"" + name + "\""));
    EXPECT_TRUE(WaitUntil([&] {
      return client.Get("/admin/top").body.find("{\"key\":\"" + name + "\"") != std::string::npos;
    })) << name;
    const HttpResponse reset = client.Send("POST", "/admin/reset/" + path);
    EXPECT_EQ(reset.status, 200) << name;
    EXPECT_THAT(reset.body, HasSubstr("\"held\":true"));
    EXPECT_THAT(client.Get("/admin/metrics/" + path).body, HasSubstr("\"currentTokens\":100"));
    EXPECT_THAT(client.Get("/admin/audit?limit=1").body,
                HasSubstr("\"target\":\"key:" + name + "\""));
  }
}

TEST_F(HostileKeys, ValuesOfEntriesAreExplainedAndReset) {
  HttpClient client = Client();
  Check(R"({"descriptors":[[{"key":"user","value":"a\nb"}]],"cost":4})");
  EXPECT_THAT(client.Get("/admin/explain?user=a%0Ab").body,
              HasSubstr("\"remaining\":5,"));  // 9 − 4
  EXPECT_THAT(client.Send("POST", "/admin/reset?user=a%0Ab").body, HasSubstr("\"held\":true"));
  EXPECT_THAT(client.Get("/admin/explain?user=a%0Ab").body, HasSubstr("\"remaining\":9,"));
}

TEST_F(HostileKeys, WhatIsTooLongOrBrokenIsRefusedWithAWord) {
  HttpClient client = Client();
  const std::string large(1'000'000, 'x');
  EXPECT_EQ(Check("{\"key\":\"" + large.substr(0, 500'000) + "\"}").status, 400);
  EXPECT_EQ(Check("{\"key\":\"" + large + "\"}").status, 413);
  for (const std::string target : {"/admin/metrics/", "/admin/explain?key=", "/admin/reset/"}) {
    HttpClient other = Client();
    const char* method = target.starts_with("/admin/reset") ? "POST" : "GET";
    const HttpResponse refused = other.Send(method, target + large);
    EXPECT_THAT(refused.status, ::testing::AnyOf(400, 414, 431)) << target;
    EXPECT_THAT(refused.body, StartsWith("{\"status\":4"));
    // Longer than the name of a bucket, shorter than a head. Only a query has a bound for it.
    const HttpResponse long_key = client.Send(method, target + std::string(5000, 'x'));
    EXPECT_EQ(long_key.status, target.ends_with('=') ? 400 : 200) << target << long_key.body;
    EXPECT_EQ(client.Send(method, target + "%zz").status, 400) << target;
  }
  // Policy names are stored and shown everywhere: no control characters.
  EXPECT_EQ(client.Get("/admin/policies/a%0Ab").status, 400);
  EXPECT_EQ(client.Post("/admin/policies", R"({"key":"a\nb","type":"TOKEN_BUCKET"})").status, 400);
  EXPECT_THAT(client.Get("/admin/status").body, HasSubstr("\"status\":\"UP\""));
}

}  // namespace
}  // namespace weir::test
