// What the service does with a query that it cannot read: it must never take a part of it for
// absent.

#include "e2e/service/fixture.h"

namespace weir::test {
namespace {

using ::testing::HasSubstr;

class Query : public ServiceTest {
 protected:
  void SetUp() override { Serve(); }
};

TEST_F(Query, AValueThatDoesNotDecodeIsAnError) {
  HttpClient client = Client();
  for (const char* path :
       {"/admin/policies/p/diff?from=1&to=2%0A",
        "/admin/policies?source=%0A",
        "/admin/policies/p/versions?limit=%zz",
        "/admin/top?kind=%zz",
        "/admin/top?n=%",
        "/admin/audit?before=1%00",
        "/admin/audit?target=%ff",
        "/admin/metrics?prefix=%",
        "/admin/explain?key=%",
        "/api/v1/slots/due?config=default&limit=%",
        "/api/v1/slots/due?config=default&state=%0A",
        "/api/v1/slots/due?config=default&before=%",
        "/admin/rate-limit/windows?config=default&from=%",
        "/admin/rate-limit/forecast?config=default&requestedTime=2030-01-01T00:00:00Z&count=%",
        "/api/messages?userId=ann&state=%",
        "/api/messages?userId=ann&limit=%",
        "/api/config?limit=%",
        "/api/config/ann?channel=%0A",
        "/admin/notify/dead?userId=%ff",
        "/v1/auth?cost=%"}) {
    EXPECT_EQ(client.Get(path).status, 400) << path;
  }
}

TEST_F(Query, AParameterThatIsGivenTwiceIsAnError) {
  HttpClient client = Client();
  for (const char* path :
       {"/admin/top?n=1&n=2", "/admin/audit?limit=1&limit=2", "/admin/explain?key=a&key=b",
        "/api/v1/slots/due?config=default&limit=1&limit=2", "/api/messages?userId=a&userId=b",
        "/api/config?after=a&after=b", "/v1/auth?cost=1&cost=2"}) {
    const HttpResponse refused = client.Get(path);
    EXPECT_EQ(refused.status, 400) << path;
    EXPECT_THAT(refused.body, HasSubstr("is given twice")) << path;
  }
  EXPECT_EQ(client.Post("/v1/check?http_status=0&http_status=1", R"({"key":"a"})").status, 400);
  EXPECT_EQ(client.Post("/admin/reset?key=a&key=b", "").status, 400);
}

TEST_F(Query, WhatNobodyReadsIsAnError) {
  HttpClient client = Client();
  ASSERT_EQ(client.Post("/admin/policies", R"({"key":"p","type":"TOKEN_BUCKET"})").status, 201);
  for (const char* path : {"/admin/policies/p", "/admin/policies/p/versions/1", "/admin/metrics/p",
                           "/admin/algorithms"}) {
    EXPECT_EQ(client.Get(path).status, 200) << path;
    const HttpResponse refused = client.Get(path + std::string("?verbose=1"));
    EXPECT_EQ(refused.status, 400) << path;
    EXPECT_THAT(refused.body, HasSubstr("unknown parameter 'verbose'")) << path;
  }
  EXPECT_EQ(client.Post("/admin/reset/p?dry_run=1", "").status, 400);
}

// A client that reads only the status would take every refusal for a yes.
TEST_F(Query, AStatusThatIsAskedForInOtherWordsIsAnError) {
  HttpClient client = Client();
  for (const char* value : {"=yes", "=%31", "=2", "=", ""}) {
    const std::string path = std::string("/v1/check?http_status") + value;
    EXPECT_EQ(client.Post(path, R"({"key":"a"})").status, 400) << path;
  }
  for (const char* value : {"1", "true", "0", "false"}) {
    const std::string path = std::string("/v1/check?http_status=") + value;
    EXPECT_EQ(client.Post(path, R"({"key":"a"})").status, 200) << path;
  }
}

}  // namespace
}  // namespace weir::test
