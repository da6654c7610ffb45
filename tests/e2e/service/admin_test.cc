// The admin API as in the specification's table and examples.

#include "e2e/service/fixture.h"

namespace weir::test {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

class Admin : public ServiceTest {};

constexpr std::string_view kExample =
    R"({ "key": "user-123", "type": "TOKEN_BUCKET", "capacity": 100, "refillRate": 10, "windowSeconds": 60 })";

TEST_F(Admin, PoliciesAreCreatedChangedAndDeleted) {
  Serve();
  HttpClient client = Client();
  const HttpResponse created = client.Post("/admin/policies", kExample);
  EXPECT_EQ(created.status, 201);
  EXPECT_THAT(created.body,
              StartsWith(R"({"id":1,"policyKey":"user-123","type":"TOKEN_BUCKET","capacity":100,)"
                         R"("refillRate":10,"windowSeconds":60)"));
  EXPECT_THAT(created.body, EndsWith(R"(,"warnings":["windowSeconds is not used by TOKEN_BUCKET; )"
                                     R"(10 permits come back each second"]})"));
  EXPECT_EQ(client.Post("/admin/policies", kExample).status, 409);
  EXPECT_EQ(client.Get("/admin/policies/user-123").body,
            created.body.substr(0, created.body.find(",\"warnings\"")) + "}");
  EXPECT_THAT(client.Post("/admin/policies", R"({"type":"FIXED_WINDOW"})").body,
              HasSubstr("key: is missing"));
  const HttpResponse updated =
      client.Send("PUT", "/admin/policies/user-123",
                  R"({"type":"SLIDING_WINDOW","capacity":2,"windowSeconds":60})");
  EXPECT_EQ(updated.status, 200);
  EXPECT_THAT(updated.body, HasSubstr(R"("type":"SLIDING_WINDOW","capacity":2)"));
  // In force immediately.
  EXPECT_EQ(Check(R"({"key":"user-123"})", "/v1/check?http_status=1").status, 200);
  EXPECT_EQ(Check(R"({"key":"user-123"})", "/v1/check?http_status=1").status, 200);
  EXPECT_EQ(Check(R"({"key":"user-123"})", "/v1/check?http_status=1").status, 429);
  EXPECT_EQ(client.Send("DELETE", "/admin/policies/user-123").status, 204);
  EXPECT_EQ(client.Get("/admin/policies/user-123").status, 404);
  EXPECT_EQ(client.Send("DELETE", "/admin/policies/user-123").status, 404);
  EXPECT_EQ(client.Send("PUT", "/admin/policies/user-123", R"({"type":"TOKEN_BUCKET"})").status,
            404);
}

TEST_F(Admin, OnlyFilesOfTheDashboardMayBeCached) {
  Serve();
  HttpClient client = Client();
  for (const char* path : {"/admin/status", "/admin/policies", "/admin/audit", "/admin/metrics",
                           "/admin/nothing", "/api/config/42", "/metrics", "/v1/auth"}) {
    EXPECT_EQ(client.Get(path).Header("Cache-Control"), "no-store") << path;
  }
  EXPECT_EQ(client.Get("/").Header("Cache-Control"), "no-cache");
}

TEST_F(Admin, WhereAFractionCanBeGivenIsSaid) {
  Serve();
  const HttpResponse refused =
      Client().Post("/admin/policies", R"({"key":"k","type":"TOKEN_BUCKET","refillRate":0.5})");
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.body,
              HasSubstr("refillRate: must be an integer, the permits a second, not 0.5; "
                        "for a fraction use a policy file (refill_per_second: 0.5)"));
}

TEST_F(Admin, NumbersThatATypeDoesNotUseAreAcceptedAndNamed) {
  Serve();
  HttpClient client = Client();
  int n = 0;
  const auto create = [&](const std::string& numbers) {
    const HttpResponse created = client.Post(
        "/admin/policies", R"({"key":"k)" + std::to_string(n++) + R"(",)" + numbers + "}");
    EXPECT_EQ(created.status, 201) << created.body;
    return created.body;
  };
  EXPECT_THAT(create(R"("type":"SLIDING_WINDOW","capacity":5,"refillRate":10,"windowSeconds":60)"),
              HasSubstr(R"("warnings":["refillRate is not used by SLIDING_WINDOW"]})"));
  EXPECT_THAT(
      create(R"("type":"TOKEN_BUCKET","capacity":5,"refillRate":1,"window":"2m","buckets":4)"),
      HasSubstr(R"(["window is not used by TOKEN_BUCKET; 1 permits come back each second",)"
                R"("buckets is not used by )"));
  for (const char* numbers :
       {R"("type":"SLIDING_WINDOW","capacity":5,"refillRate":0,"windowSeconds":60)",
        R"("type":"SLIDING_WINDOW","capacity":5,"windowSeconds":60)",
        R"("type":"TOKEN_BUCKET","capacity":5,"refillRate":1,"windowSeconds":0)"}) {
    EXPECT_THAT(create(numbers), Not(HasSubstr("warnings"))) << numbers;
  }
  // A policy without an explicit limit.
  const std::string made = create(R"("type":"FIXED_WINDOW")");
  EXPECT_THAT(
      made,
      HasSubstr(
          R"("warnings":["capacity is missing; the limit is 100","windowSeconds is missing; it is 60"]})"));
  EXPECT_THAT(create(R"("type":"FIXED_WINDOW","capacity":3,"windowSeconds":1,"cost":10)"),
              HasSubstr("every request is refused: each costs 10, more than the limit of 3"));
  // An answer may be sent back unchanged.
  const HttpResponse back = client.Send("PUT", "/admin/policies/k5", made);
  EXPECT_EQ(back.status, 200);
  EXPECT_THAT(back.body, Not(HasSubstr("warnings")));
  EXPECT_THAT(client.Send("PUT", "/admin/policies/k5", R"({"type":"SLIDING_WINDOW"})").body,
              HasSubstr(R"(,"the type changes from FIXED_WINDOW to SLIDING_WINDOW, so keys start )"
                        R"(with a full quota"])"));
}

// Two people read version 1; the second one to write must not undo the first one's change.
TEST_F(Admin, AChangeOfAVersionThatIsGoneIsRefused) {
  Serve();
  HttpClient client = Client();
  ASSERT_EQ(client.Post("/admin/policies", kExample).status, 201);
  const std::string first = R"({"type":"TOKEN_BUCKET","capacity":7})";
  const std::string second = R"({"type":"TOKEN_BUCKET","capacity":8})";
  const std::string path = "/admin/policies/user-123";
  EXPECT_EQ(client.Send("PUT", path + "?version=1", first).status, 200);
  const HttpResponse late = client.Send("PUT", path + "?version=1", second);
  EXPECT_EQ(late.status, 409);
  EXPECT_THAT(late.body, HasSubstr("has changed: version 1 is no longer current"));
  EXPECT_EQ(client.Send("DELETE", path + "?version=1").status, 409);
  EXPECT_THAT(client.Get(path).body, HasSubstr(R"("capacity":7,)"));
  EXPECT_EQ(client.Send("PUT", path + "?version=0", second).status, 400);
  EXPECT_EQ(client.Send("DELETE", path + "?version=x").status, 400);
  // So would one that does not decode, and of two only one could count.
  for (const char* condition : {"?version=2%0A", "?version=2%", "?version=2&version=1"}) {
    EXPECT_EQ(client.Send("PUT", path + condition, second).status, 400) << condition;
    EXPECT_EQ(client.Send("DELETE", path + condition).status, 400) << condition;
  }
  // A misspelt condition would be none.
  const HttpResponse misspelt = client.Send("PUT", path + "?verson=1", second);
  EXPECT_EQ(misspelt.status, 400);
  EXPECT_THAT(misspelt.body, HasSubstr("unknown parameter 'verson'; did you mean version?"));
  EXPECT_EQ(client.Send("DELETE", path + "?verson=1").status, 400);
  EXPECT_EQ(client.Send("POST", "/admin/policies?dry_run=true", first).status, 400);
  EXPECT_EQ(client.Get("/admin/policies?source=fiel").status, 400);
  EXPECT_EQ(client.Send("DELETE", path + "?version=2").status, 204);
}

TEST_F(Admin, ErrorsHaveOneSchemaAndNameTheField) {
  Serve();
  HttpClient client = Client();
  const HttpResponse response =
      client.Post("/admin/policies", R"({"key":"k","type":"TOKEN_BUCKET","capacity":0})");
  EXPECT_EQ(response.status, 400);
  EXPECT_THAT(response.body,
              MatchesRegex(R"(\{"status":400,"error":"Bad Request","message":"capacity: .*",)"
                           R"("timestamp":"20..-..-..T..:..:..Z"\})"));
  for (const auto& [body, field] : std::vector<std::pair<std::string, std::string>>{
           {R"({"type":"TOKEN_BUCKET"})", "key: "},
           {R"({"key":"k","type":"LEAKY"})", "type: "},
           {R"({"key":"k","type":"TOKEN_BUCKET","capacity":"many"})", "capacity: "},
           {R"({"key":"k","type":"TOKEN_BUCKET","capacity":99999999999999999999})", "capacity: "},
           {R"({"key":"k","type":"TOKEN_BUCKET","colour":"red"})", "colour: "}}) {
    const HttpResponse bad = client.Post("/admin/policies", body);
    EXPECT_EQ(bad.status, 400) << body;
    EXPECT_THAT(bad.body, HasSubstr("\"message\":\"" + field)) << body;
  }
}

TEST_F(Admin, WhateverTheListShowsIsFoundByItsName) {
  ServePolicies(R"(
domain: api
policies: [{name: per-user, match: {user: "*"}, quota: {fixed_window: {limit: 7, window: 100d}}}]
)");
  HttpClient client = Client();
  for (const char* name : {"per-user", "api%2Fper-user"}) {
    EXPECT_THAT(client.Get(std::string("/admin/policies/") + name).body,
                AllOf(HasSubstr(R"("policyKey":"per-user")"), HasSubstr(R"("source":"file")")));
  }
  EXPECT_THAT(client.Get("/admin/policies/default").body, HasSubstr(R"("source":"default")"));
}

TEST_F(Admin, ATrialForOneKeyLeavesTheDefaultPolicyInForce) {
  Serve();
  HttpClient client = Client();
  ASSERT_EQ(client
                .Post("/admin/policies",
                      R"({"key":"k","type":"TOKEN_BUCKET","capacity":1,"shadow":true})")
                .status,
            201);
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(Check(R"({"key":"k"})").body, AllOf(HasSubstr(R"("allowed":true,"limit":100)"),
                                                    HasSubstr(R"("policy":"default")")));
  }
  EXPECT_THAT(client.Get("/admin/explain?key=k").body,
              AllOf(HasSubstr(R"("bucket":"default/k","source":"admin API")"),
                    HasSubstr(R"("bucket":"key|k","source":"built in")")));
  EXPECT_THAT(client.Send("POST", "/admin/reset/k").body,
              AllOf(HasSubstr(R"({"bucket":"key|k","policy":"default","held":true})"),
                    HasSubstr(R"({"bucket":"default/k","policy":"k","held":true})")));
  EXPECT_THAT(client.Get("/admin/explain?bucket=default/k").body, HasSubstr("1 of 1 left"));
}

TEST_F(Admin, ListsArePaged) {
  Serve();
  HttpClient client = Client();
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(client
                  .Post("/admin/policies",
                        R"({"key":"p)" + std::to_string(i) + R"(","type":"TOKEN_BUCKET"})")
                  .status,
              201);
  }
  std::string cursor;
  int pages = 0;
  int policies = 0;
  do {
    const HttpResponse page = client.Get("/admin/policies?limit=2&cursor=" + cursor);
    ASSERT_EQ(page.status, 200);
    EXPECT_EQ(page.Header("X-Total-Count"), "5");
    for (std::size_t at = page.body.find("policyKey"); at != std::string::npos;
         at = page.body.find("policyKey", at + 1)) {
      ++policies;
    }
    cursor = page.Header("X-Next-Cursor");
    ++pages;
  } while (!cursor.empty() && pages < 10);
  EXPECT_EQ(pages, 3);
  EXPECT_EQ(policies, 5);
  EXPECT_EQ(client.Get("/admin/policies?limit=0").status, 400);
}

TEST_F(Admin, KeysAreFoundByTheirBeginning) {
  Serve();
  for (const char* key : {"a", "ab", "abc", "b"}) {
    ASSERT_EQ(Check(std::string(R"({"key":")") + key + R"("})").status, 200);
  }
  HttpClient client = Client();
  const auto first = StartsWith(R"([{"bucket":"key|ab","key":"ab","algorithm":"TOKEN_BUCKET",)");
  const auto second = HasSubstr(R"({"bucket":"key|abc","key":"abc","algorithm":"TOKEN_BUCKET",)");
  EXPECT_THAT(client.Get("/admin/metrics?prefix=key%7Cab").body,
              AllOf(first, second, Not(HasSubstr(R"("key|b")")), Not(HasSubstr(R"("key|a")"))));
  const HttpResponse page = client.Get("/admin/metrics?prefix=key%7Cab&limit=1");
  EXPECT_THAT(page.body, AllOf(first, Not(second)));
  const std::string cursor(page.Header("X-Next-Cursor"));
  const HttpResponse last = client.Get("/admin/metrics?prefix=key%7Cab&limit=1&cursor=" + cursor);
  EXPECT_THAT(last.body, AllOf(second, Not(first)));
  EXPECT_EQ(last.Header("X-Next-Cursor"), "");
  EXPECT_EQ(client.Get("/admin/metrics?prefix=key%7Cac").body, "[]");
  // The record of a reservation is beside the bucket, and is no key.
  ASSERT_EQ(client.Post("/v1/reserve", R"({"key":"kept","cost":3})").status, 200);
  const std::string reserved = client.Get("/admin/metrics?prefix=key%7Ckept%7C").body;
  EXPECT_THAT(reserved, HasSubstr(R"("bucket":"key|kept|%reserved:)"));
  EXPECT_THAT(reserved, Not(HasSubstr(R"("key":)")));
}

TEST_F(Admin, AnotherSitesPageIsRefused) {
  Serve();
  HttpClient client = Client();
  const auto post = [&](const std::vector<std::pair<std::string, std::string>>& headers) {
    return client.Send("POST", "/admin/reset/user-1", "", headers).status;
  };
  EXPECT_EQ(post({}), 200);
  EXPECT_EQ(post({{"Origin", "https://evil.example"}}), 403);
  EXPECT_EQ(post({{"Host", "evil.example"}, {"Origin", "http://evil.example"}}), 403);
  EXPECT_EQ(post({{"Sec-Fetch-Site", "cross-site"}}), 403);
  EXPECT_EQ(post({{"Content-Type", "text/plain"}}), 415);
}

TEST_F(Admin, KeysAreShownAndReset) {
  Serve();
  HttpClient client = Client();
  client.Post("/admin/policies",
              R"({"key":"user 1/2","type":"FIXED_WINDOW","capacity":100,"windowSeconds":8640000})");
  for (int i = 0; i < 13; ++i) Check(R"({"key":"user 1/2"})");
  // 13 of 100 are used, as in the specification's example.
  EXPECT_THAT(client.Get("/admin/metrics/user%201%2F2").body,
              StartsWith(R"({"key":"user 1/2","algorithm":"FIXED_WINDOW","currentTokens":87,)"
                         R"("capacity":100,"windowRequestCount":13,"windowSeconds":8640000)"));
  EXPECT_THAT(client.Get("/admin/metrics").body,
              StartsWith(R"([{"bucket":"key|user 1/2","key":"user 1/2","algorithm":"FIXED_WINDOW",)"
                         R"("currentTokens":87,"capacity":100,"windowRequestCount":13,)"
                         R"("policy":"user 1/2","resetAfterMs":)"));
  client.Post("/admin/policies", R"({"key":"per-user","type":"FIXED_WINDOW","capacity":5,)"
                                 R"("windowSeconds":8640000,"match":{"user":"*"}})");
  Check(R"({"descriptors":[{"user":"42"}],"cost":5})");
  EXPECT_THAT(client.Get("/admin/metrics").body,
              AllOf(HasSubstr(R"(/per-user|user:42","algorithm":"FIXED_WINDOW","currentTokens":0,)"
                              R"("capacity":5,"windowRequestCount":5,"policy":"per-user",)"),
                    HasSubstr(R"("status":"LIMITED")")));
  // A shadow policy denies nothing.
  client.Post("/admin/policies", R"({"key":"watch","type":"FIXED_WINDOW","capacity":1,)"
                                 R"("windowSeconds":8640000,"match":{"plan":"*"},"shadow":true})");
  Check(R"({"descriptors":[{"plan":"free"}]})");
  EXPECT_THAT(client.Get("/admin/metrics?prefix=default/watch").body,
              AllOf(HasSubstr(R"("currentTokens":0)"), HasSubstr(R"("status":"SHADOW"}])")));
  EXPECT_EQ(client.Send("POST", "/admin/reset/user%201%2F2").status, 200);
  EXPECT_THAT(client.Get("/admin/metrics/user%201%2F2").body, HasSubstr("\"currentTokens\":100"));
  EXPECT_EQ(client.Get("/admin/metrics/%00").status, 200);
}

TEST_F(Admin, ResetsWhatListsNameAndSaysWhetherAnythingWasHeld) {
  ServePolicies(R"(
domain: api
policies:
  - {name: per-user, match: {user: "*"}, quota: {fixed_window: {limit: 1, window: 100d}}}
  - {name: watch, match: {user: "*", route: "*"}, shadow: true,
     quota: {sliding_log: {limit: 9, window: 1h}}}
  - {name: free, match: {staff: "*"}, unlimited: true}
)");
  HttpClient client = Client();
  const std::string check = R"({"domain":"api","descriptors":[{"user":"z","route":"/a|b"}]})";
  const auto allowed = [&] { return Check(check, "/v1/check?http_status=1").status == 200; };
  const auto reset = [&](const std::string& target) {
    const HttpResponse response = client.Post("/admin/reset" + target, "");
    EXPECT_EQ(response.status, 200) << response.body;
    return response.body;
  };
  ASSERT_TRUE(allowed());
  ASSERT_FALSE(allowed());
  // Charged while the other denied: 2 of 9. Both are listed by /admin/explain.
  const std::string bucket = "api%2Fper-user%7Cuser%3Az";
  EXPECT_EQ(reset("/" + bucket),
            R"({"key":"api/per-user|user:z","status":"RESET","held":true,"buckets":[)"
            R"({"bucket":"key|api/per-user%7Cuser:z","policy":"default","held":false},)"
            R"({"bucket":"api/per-user|user:z","policy":"per-user","held":true}]})");
  EXPECT_TRUE(allowed());
  EXPECT_FALSE(allowed());
  EXPECT_EQ(reset("?bucket=" + bucket),
            R"({"status":"RESET","held":true,"buckets":[)"
            R"({"bucket":"api/per-user|user:z","policy":"per-user","held":true}]})");
  EXPECT_TRUE(allowed());
  // Without a domain: only `api` has a matching policy.
  for (const std::string target : {"?domain=api&user=z&route=/a%7Cb", "?user=z&route=/a%7Cb"}) {
    EXPECT_FALSE(allowed());
    const std::string body = reset(target);
    EXPECT_THAT(
        body,
        HasSubstr(R"("bucket":"api/watch|route:/a%7Cb|user:z","policy":"watch","held":true)"));
    EXPECT_THAT(body,
                HasSubstr(R"("bucket":"api/per-user|user:z","policy":"per-user","held":true)"));
    EXPECT_TRUE(allowed());
  }
  EXPECT_THAT(reset("/nobody-ever"), HasSubstr(R"("status":"RESET","held":false)"));
  EXPECT_THAT(reset("?key=nobody-ever"), HasSubstr(R"("held":false)"));
  EXPECT_THAT(reset("?bucket=nonsense"), HasSubstr(R"("held":false)"));
  EXPECT_EQ(client.Post("/admin/reset?staff=s", "").status, 404);
  EXPECT_EQ(client.Post("/admin/reset?domain=other&user=z", "").status, 404);
  EXPECT_EQ(client.Post("/admin/reset", "").status, 400);
  EXPECT_EQ(client.Post("/admin/reset?key=a&bucket=b", "").status, 400);
  const std::string log = client.Get("/admin/audit").body;
  EXPECT_THAT(log, HasSubstr(R"("action":"key.reset","target":"key:api/per-user|user:z")"));
  EXPECT_THAT(log, HasSubstr(R"("target":"key:api user=z route=/a|b")"));
}

TEST_F(Admin, ExplainsBucketsAndFindsTheDomain) {
  const auto second = dir_.Write("second.yaml", R"(
domain: web
policies:
  - {name: per-user, match: {user: "*"}, quota: {fixed_window: {limit: 5, window: 100d}}}
  - {name: per-ip, match: {ip: "*"}, quota: {fixed_window: {limit: 5, window: 100d}}}
)");
  const auto first = dir_.Write("first.yaml", R"(
domain: api
policies:
  - {name: per-user, match: {user: "*"}, quota: {fixed_window: {limit: 1, window: 100d}}}
)");
  Serve({"--policies", first.string(), "--policies", second.string()});
  HttpClient client = Client();
  Check(R"({"domain":"api","descriptors":[{"user":"z"}]})");
  const HttpResponse bucket = client.Get("/admin/explain?bucket=api/per-user%7Cuser:z");
  EXPECT_EQ(bucket.status, 200) << bucket.body;
  EXPECT_THAT(bucket.body,
              StartsWith(R"({"allowed":false,"limit":1,"remaining":0,"retryAfterMs":)"));
  EXPECT_THAT(
      bucket.body,
      AllOf(HasSubstr(R"("policy":"per-user")"), HasSubstr("limited by policy"),
            HasSubstr(R"("bucket":"api/per-user|user:z","source":")"), HasSubstr("first.yaml:4:")));
  EXPECT_THAT(client.Get("/admin/explain?bucket=key%7Cuser-1").body,
              StartsWith(R"({"allowed":true,"limit":100,"remaining":100,)"));
  EXPECT_EQ(client.Get("/admin/explain?bucket=api/gone%7Cuser:z").status, 404);
  // Two domains have a policy for users, one for addresses, none for colors.
  const HttpResponse which = client.Get("/admin/explain?user=z");
  EXPECT_EQ(which.status, 400);
  EXPECT_THAT(which.body,
              AllOf(HasSubstr("choose one of api, web"), HasSubstr(R"("domains":["api","web"])")));
  EXPECT_THAT(client.Get("/admin/explain?domain=web&user=z").body,
              AllOf(HasSubstr(R"("limit":5)"), HasSubstr(R"("domain":"web")")));
  EXPECT_THAT(client.Get("/admin/explain?ip=::1").body,
              AllOf(HasSubstr(R"("limit":5)"), HasSubstr(R"("domain":"web")")));
  EXPECT_THAT(client.Get("/admin/explain?colour=red").body, HasSubstr("no policy applies"));
}

TEST_F(Admin, ExplainsWithoutCharging) {
  ServePolicies(
      "policies: [{name: per-user, match: {user: \"*\"}, quota: {fixed_window: {limit: 3, window: "
      "100d}}}]");
  HttpClient client = Client();
  Check(R"({"descriptors":[{"user":"42"}],"cost":3})");
  for (int i = 0; i < 3; ++i) {
    const HttpResponse response = client.Get("/admin/explain?user=42");
    EXPECT_EQ(response.status, 200);
    EXPECT_THAT(response.body, StartsWith(R"({"allowed":false,"limit":3,"remaining":0,)"));
    EXPECT_THAT(response.body, HasSubstr("\"policy\":\"per-user\""));
  }
  EXPECT_THAT(client.Get("/admin/explain?user=43&cost=2").body, StartsWith("{\"allowed\":true"));
  EXPECT_EQ(client.Get("/admin/explain").status, 400);
}

TEST_F(Admin, KeysGuardIt) {
  Serve({"--admin-key", "first-secret", "--admin-key", "second-secret"});
  HttpClient client = Client();
  EXPECT_EQ(client.Get("/admin/status").status, 401);
  EXPECT_EQ(client.Get("/admin/status", {{"X-API-Key", "wrong-secret"}}).status, 401);
  EXPECT_EQ(client.Get("/admin/status", {{"X-API-Key", "second-secret"}}).status, 200);
  EXPECT_EQ(client.Get("/admin/status", {{"Authorization", "Bearer first-secret"}}).status, 200);
  EXPECT_EQ(client.Post("/v1/check", R"({"key":"a"})").status, 200);
  EXPECT_EQ(weir_->process().error_output().find("secret"), std::string::npos);
}

TEST_F(Admin, IsNeverOpenToTheNetwork) {
  WeirProcess weir({"serve", "--http", "0.0.0.0:0", "--grpc", "off", "--resp", "off", "--data",
                    (dir_ / "data").string()});
  EXPECT_EQ(weir.process().Wait(), 2);
  EXPECT_THAT(weir.process().error_output(), HasSubstr("admin.keys: required"));
}

TEST_F(Admin, StatusTellsHealthAndVersion) {
  Serve();
  EXPECT_THAT(Client().Get("/admin/status").body, StartsWith(R"({"status":"UP","version":")"));
}

TEST_F(Admin, ListsPoliciesOfTheApiAndOfFilesPageByPage) {
  ServePolicies(
      "policies: [{name: f1, match: {user: \"*\"}, unlimited: true}, "
      "{name: f2, match: {ip: \"*\"}, quota: {fixed_window: {limit: 3, window: 1h}}}]");
  HttpClient client = Client();
  client.Post("/admin/policies", R"({"key":"a1","type":"TOKEN_BUCKET"})");
  client.Post("/admin/policies", R"({"key":"a2","type":"TOKEN_BUCKET"})");
  std::vector<std::string> bodies;
  std::string cursor;
  do {
    const HttpResponse page = client.Get("/admin/policies?limit=1&cursor=" + cursor);
    ASSERT_EQ(page.status, 200);
    EXPECT_EQ(page.Header("X-Total-Count"), "4");
    bodies.push_back(page.body);
    cursor = page.Header("X-Next-Cursor");
  } while (!cursor.empty() && bodies.size() < 10);
  ASSERT_EQ(bodies.size(), 4U);
  EXPECT_THAT(bodies[0], HasSubstr(R"("policyKey":"a1")"));
  EXPECT_THAT(bodies[0], HasSubstr(R"("source":"admin")"));
  EXPECT_THAT(bodies[2], HasSubstr(R"("policyKey":"f1")"));
  EXPECT_THAT(bodies[2], HasSubstr(R"("unlimited":true)"));
  EXPECT_THAT(bodies[3], HasSubstr(R"("type":"FIXED_WINDOW","capacity":3)"));
  EXPECT_THAT(bodies[3], HasSubstr(R"("source":"file","readOnly":true)"));
  EXPECT_EQ(client.Get("/admin/policies?cursor=x9").status, 400);
}

TEST_F(Admin, ChangesAreAuditedUndoneAndRolledBack) {
  Serve({"--admin-key", "first-secret"});
  HttpClient client = Client();
  const HttpHeaders key = {{"X-API-Key", "first-secret"}};
  const auto capacity = [&] {
    const std::string body = client.Get("/admin/policies/p", key).body;
    const std::size_t at = body.find("\"capacity\":");
    return at == std::string::npos ? "none" : body.substr(at + 11, body.find(',', at) - at - 11);
  };
  const auto with = [](const std::string& fields) {
    return R"({"type":"FIXED_WINDOW","windowSeconds":8640000,)" + fields + "}";
  };
  ASSERT_EQ(client.Post("/admin/policies", with(R"("key":"p","capacity":1)"), key).status, 201);
  ASSERT_EQ(client.Send("PUT", "/admin/policies/p", with(R"("capacity":2)"), key).status, 200);
  ASSERT_EQ(client.Post("/v1/check", R"({"key":"p"})").status, 200);
  ASSERT_EQ(client.Send("POST", "/admin/reset/p", "", key).status, 200);
  EXPECT_EQ(client.Get("/admin/audit").status, 401);
  const std::string log = client.Get("/admin/audit", key).body;
  // printf first-secret | sha256sum begins with this.
  EXPECT_THAT(log, HasSubstr("\"who\":\"key e0a5091e from 127.0.0.1\""));
  EXPECT_THAT(log, HasSubstr(R"("action":"key.reset","target":"key:p","before":null)"));
  EXPECT_THAT(log, HasSubstr(R"("action":"policy.update","target":"policy:p","before":{)"));
  EXPECT_THAT(client.Get("/admin/audit?limit=1", key).body, HasSubstr("\"next\":3"));
  EXPECT_THAT(client.Get("/admin/audit?limit=1&before=3", key).body, HasSubstr("{\"id\":2,"));

  EXPECT_EQ(client.Send("POST", "/admin/audit/2/undo").status, 401);
  EXPECT_EQ(client.Send("POST", "/admin/audit/1/undo", "", key).status, 409);
  EXPECT_EQ(client.Send("POST", "/admin/audit/3/undo", "", key).status, 409);  // a reset
  EXPECT_EQ(client.Send("POST", "/admin/audit/2/undo", "", key).status, 200);
  EXPECT_EQ(capacity(), "1");
  EXPECT_EQ(client.Post("/admin/policies/p/rollback", R"({"version":2})", key).status, 200);
  EXPECT_EQ(capacity(), "2");
  EXPECT_EQ(client.Post("/admin/policies/p/rollback", R"({"version":77})", key).status, 404);
  EXPECT_EQ(client.Post("/admin/policies/p/rollback", "{", key).status, 400);
  EXPECT_EQ(
      client.Post("/admin/policies/p/rollback", R"({"version":2,"expires":"2h"})", key).status,
      400);
  EXPECT_THAT(client.Get("/admin/policies/p/versions/1", key).body,
              AllOf(HasSubstr("{\"version\":1,"), HasSubstr("\"capacity\":1,")));
  EXPECT_EQ(client.Get("/admin/policies/p/versions/9", key).status, 404);
  EXPECT_THAT(client.Get("/admin/policies/p/versions", key).body,
              HasSubstr(R"({"policyKey":"p","versions":[{"version":4,)"));
}

TEST_F(Admin, ReloadsOfPolicyFilesAreInTheAuditLog) {
  const auto file = ServePolicies(R"(
policies:
  - {name: kept, match: {kept: "*"}, quota: {fixed_window: {limit: 7, window: 100d}}}
  - {name: per-user, match: {user: "*"}, shadow: true, quota: {fixed_window: {limit: 1, window: 100d}}}
  - {name: gone, match: {ip: "*"}, unlimited: true}
)");
  HttpClient client = Client();
  std::ofstream(file) << R"(# one line more: places move, nothing changes
# and another
policies:
  - {name: per-user, match: {user: "*"}, quota: {fixed_window: {limit: 2, window: 100d}}}
  - {name: fresh, match: {route: "*"}, quota: {fixed_window: {limit: 3, window: 100d}}}
  - {name: kept, match: {kept: "*"}, quota: {fixed_window: {limit: 7, window: 100d}}}
)";
  const auto log = [&] { return client.Get("/admin/audit").body; };
  ASSERT_TRUE(WaitUntil([&] { return log().find("default/fresh") != std::string::npos; }));
  const std::string changes = log();
  EXPECT_THAT(changes,
              HasSubstr(R"("who":"file policies.yaml","action":"policy.file",)"
                        R"("target":"file:default/per-user","before":{"policyKey":"per-user")"));
  EXPECT_THAT(changes, HasSubstr(R"("shadow":true)"));
  EXPECT_THAT(changes, HasSubstr(R"("target":"file:default/gone","before":{"policyKey":"gone")"));
  EXPECT_THAT(changes, HasSubstr(R"("target":"file:default/fresh","before":null,"after":{)"));
  EXPECT_THAT(changes, Not(HasSubstr("file:default/kept")));
  const HttpResponse undo = client.Send("POST", "/admin/audit/1/undo");
  EXPECT_EQ(undo.status, 409);
  EXPECT_THAT(undo.body, HasSubstr("the change came from file policies.yaml; edit that"));
}

TEST_F(Admin, AShadowPolicyOfAFileIsEnforcedByOneOfTheSameMatchBesideIt) {
  ServePolicies(R"(
domain: api
policies:
  - {name: per-user, match: {user: "*"}, shadow: true, quota: {fixed_window: {limit: 1, window: 100d}}}
)");
  HttpClient client = Client();
  const auto status = [&] {
    return Check(R"({"domain":"api","descriptors":[{"user":"z"}]})", "/v1/check?http_status=1")
        .status;
  };
  EXPECT_EQ(status(), 200);
  EXPECT_EQ(status(), 200);
  ASSERT_EQ(client
                .Post("/admin/policies",
                      R"({"key":"per-user-now","type":"FIXED_WINDOW","capacity":1,)"
                      R"("windowSeconds":8640000,"domain":"api","match":{"user":"*"}})")
                .status,
            201);
  EXPECT_EQ(status(), 200);  // its own bucket is new
  EXPECT_EQ(status(), 429);
  ASSERT_EQ(client.Send("POST", "/admin/audit/1/undo").status, 204);
  EXPECT_EQ(status(), 200);
}

TEST_F(Admin, TheAuditLogIsBounded) {
  Serve();
  {
    HttpClient client = Client();
    for (int i = 0; i < 30; ++i) {
      const std::string key = "k" + std::to_string(i);
      client.Post("/v1/check", R"({"cost":100,"key":")" + key + "\"}");
      client.Post("/admin/reset/" + key, "");
    }
    EXPECT_THAT(client.Get("/admin/audit?limit=1000").body, HasSubstr("\"id\":1,"));
  }
  weir_->process().Signal(SIGTERM);
  EXPECT_EQ(weir_->process().Wait(), 0);
  const auto config = dir_.Write("weir.yaml", "audit: { keep: 10 }\n");
  Serve({"--config", config.string()});
  HttpClient client = Client();
  const auto log = [&] { return client.Get("/admin/audit?limit=1000").body; };
  EXPECT_TRUE(WaitUntil([&] { return log().find("\"id\":20,") == std::string::npos; }));
  EXPECT_THAT(log(), AllOf(HasSubstr("\"id\":30,"), HasSubstr("\"id\":21,")));
}

TEST_F(Admin, AnOverrideEndsByItself) {
  Serve();
  HttpClient client = Client();
  client.Post("/admin/policies", R"({"key":"p","type":"TOKEN_BUCKET","capacity":1})");
  const auto put = [&](const std::string& end) {
    return client.Send("PUT", "/admin/policies/p",
                       R"({"type":"TOKEN_BUCKET","capacity":9,"expiresAt":")" + end + "\"}");
  };
  ASSERT_EQ(put(Soon()).status, 200);
  EXPECT_TRUE(WaitUntil([&] {
    return client.Get("/admin/policies/p").body.find("\"capacity\":1,") != std::string::npos;
  }));
  // It is in force a moment before it is in the log.
  EXPECT_TRUE(WaitUntil([&] {
    return client.Get("/admin/audit?limit=1").body.find("\"policy.expire\"") != std::string::npos;
  }));
  EXPECT_EQ(put("soon").status, 400);
  const HttpResponse past = put("2020-01-01T00:00:00Z");
  EXPECT_EQ(past.status, 400);
  EXPECT_THAT(past.body, HasSubstr("expiresAt: 2020-01-01T00:00:00Z is in the past"));
  EXPECT_EQ(client
                .Post("/admin/policies",
                      R"({"key":"q","type":"TOKEN_BUCKET","expiresAt":"2020-01-01T00:00:00Z"})")
                .status,
            400);
}

TEST_F(Admin, TellsWhatIsHotAndWhatHappens) {
  Serve();
  HttpClient client = Client();
  client.Post("/admin/policies", R"({"key":"busy","type":"FIXED_WINDOW","capacity":2,)"
                                 R"("windowSeconds":8640000})");
  for (int i = 0; i < 5; ++i) Check(R"({"key":"busy"})");
  Check(R"({"key":"<script>"})");
  EXPECT_TRUE(WaitUntil([&] {
    const std::string hot = client.Get("/admin/top").body;
    return hot.find(R"({"kind":"hot","windowSeconds":60,"keys":[{"key":"busy","bucket":"key|busy",)"
                    R"("count":5,"error":0,"policy":"busy"},{"key":"<script>")") == 0;
  }));
  EXPECT_THAT(client.Get("/admin/top?kind=limited&n=1").body, HasSubstr("\"count\":3,"));
  EXPECT_EQ(client.Get("/admin/top?kind=cold").status, 400);
  EXPECT_EQ(client.Get("/admin/top?n=0").status, 400);
  const std::string live = client.Get("/admin/live").body;
  EXPECT_THAT(live, HasSubstr("\"perSecond\":[{\"t\":"));
  EXPECT_THAT(live, HasSubstr(R"("store":{"kind":"memory","state":"up","breaker":"closed"})"));
}

TEST_F(Admin, EveryDoorIsAmongWhatIsHotAndWhatHappens) {
  const auto file = dir_.Write("policies.yaml",
                               "policies: [{name: trial, match: {user: \"*\"}, shadow: true, "
                               "quota: {fixed_window: {limit: 1, window: 100d}}}]");
  Serve({"--resp", "127.0.0.1:0", "--policies", file.string()});
  TcpConnection resp(weir_->Port("resp"));
  // A burst of 1 + 1: two pass, the third does not.
  for (int i = 0; i < 3; ++i) {
    resp.Send("CL.THROTTLE thrifty 1 1 1000000\r\n");
    for (int line = 0; line < 6; ++line) resp.ReadThrough("\r\n");
  }
  for (int i = 0; i < 2; ++i) Check(R"({"descriptors":[[{"key":"user","value":"new"}]]})");
  HttpClient client = Client();
  std::string hot;
  EXPECT_TRUE(WaitUntil([&] {
    hot = client.Get("/admin/top").body;
    return hot.find("trial") != std::string::npos && hot.find("thrifty") != std::string::npos;
  }));
  EXPECT_THAT(hot, AllOf(HasSubstr(R"({"key":"thrifty","bucket":"cl|thrifty","count":3,"error":0,)"
                                   R"("policy":"CL.THROTTLE"})"),
                         HasSubstr(R"("bucket":"default/trial|user:new","count":2,"error":0,)"
                                   R"("policy":"trial"})")));
  EXPECT_THAT(client.Get("/admin/top?kind=limited").body,
              HasSubstr(R"("keys":[{"key":"thrifty","bucket":"cl|thrifty","count":1,)"));
  // Clients that the shadow policy would have denied.
  EXPECT_THAT(client.Get("/admin/top?kind=shadow").body,
              HasSubstr(R"("keys":[{"key":"default/trial|user:new","bucket":)"
                        R"("default/trial|user:new","count":1,"error":0,"policy":"trial"}])"));
  // Both endpoints: 2 and 2 passed, 1 did not.
  EXPECT_THAT(client.Get("/admin/status").body, HasSubstr(R"("allowed":4,"blocked":1,)"));
}

}  // namespace
}  // namespace weir::test
