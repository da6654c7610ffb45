// The text of a message is for its recipient: it is delivered, and kept with a dead letter for
// authorized readers, and is in no log, no state, no audit log and no metric.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "support/http_client.h"
#include "support/tcp_server.h"
#include "support/temp_dir.h"
#include "support/wait.h"
#include "support/weir_process.h"

namespace weir::notify {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kText = "your code is 4711-sesame";

// A provider that refuses, and quotes the text it received.
void Quote(test::TcpConnection& connection) {
  for (;;) {
    const std::string head = connection.ReadThrough("\r\n\r\n");
    const std::string body =
        connection.Read(std::stoul(head.substr(head.find("Content-Length: ") + 16)));
    connection.Send("HTTP/1.1 422 Refused\r\nContent-Length: " + std::to_string(body.size()) +
                    "\r\n\r\n" + body);
  }
}

TEST(MessageTexts, AreInNoLogAndNoAnswerButTheDeadLettersOwn) {
  const test::TempDir dir;
  const test::TcpServer provider(Quote);
  test::WeirProcess weir({"serve", "--http", "127.0.0.1:0", "--grpc", "off", "--resp", "off",
                          "--data", (dir / "data").string(), "--log-level", "debug"},
                         test::SpawnOptions{.env = {"WEIR_NOTIFY_PROVIDERS=http://127.0.0.1:" +
                                                    std::to_string(provider.port()) + "/sms"}});
  test::HttpClient client(weir.Port("http"));
  const std::string quoted = std::string("\"") + kText + "\"";
  ASSERT_EQ(client.Post("/api/config", R"({"userId":"42","rateLimit":2,"timeWindow":1})").status,
            200);
  const std::string send = R"({"userId":"42","message":)" + quoted + R"(,"idempotencyKey":"k"})";
  EXPECT_EQ(client.Post("/api/send", send).status, 200);
  EXPECT_EQ(client.Post("/api/send", send).status, 200) << "replayed";
  // Refusals of every kind do not contain it either.
  std::string refusals;
  for (const std::string& body :
       {R"({"userId":"42","message":"another: )" + quoted.substr(1) + R"(,"idempotencyKey":"k"})",
        R"({"userId":"43","message":)" + quoted + "}", R"({"message":)" + quoted + "}",
        R"({"userId":"42","channel":"No!","message":)" + quoted + "}",
        R"({"userId":"42","message":)" + quoted}) {
    const test::HttpResponse refused = client.Post("/api/send", body);
    EXPECT_NE(refused.status, 200) << body;
    refusals += refused.body;
  }
  EXPECT_THAT(refusals, Not(HasSubstr("sesame")));

  ASSERT_TRUE(test::WaitUntil([&] {
    return client.Get("/api/messages?state=DEAD").body.find("eventId") != std::string::npos;
  })) << weir.process().error_output();
  const std::string dead = client.Get("/admin/notify/dead").body;
  const std::size_t at = dead.find("\"eventId\":\"") + 11;
  const std::string id = dead.substr(at, dead.find('"', at) - at);
  EXPECT_THAT(client.Get("/admin/notify/dead/" + id).body, HasSubstr(kText)) << "nothing is lost";
  EXPECT_EQ(client.Post("/admin/notify/dead/replay", R"({"all":true})").status, 200);
  ASSERT_TRUE(test::WaitUntil([&] {
    return client.Get("/admin/notify/dead").body.find(id) != std::string::npos;
  })) << "dead again";
  EXPECT_EQ(client.Post("/admin/notify/dead/drop", R"({"all":true})").status, 200);
  for (const char* path : {"/api/messages?userId=42", "/admin/notify/dead", "/admin/audit",
                           "/admin/notify", "/metrics"}) {
    const test::HttpResponse answer = client.Get(path);
    EXPECT_EQ(answer.status, 200) << path;
    EXPECT_THAT(answer.body, Not(HasSubstr("sesame"))) << path;
  }
  weir.process().Terminate();
  EXPECT_THAT(weir.process().error_output(), HasSubstr("not delivered")) << "it logs";
  EXPECT_THAT(weir.process().error_output(), Not(HasSubstr("sesame")));
  EXPECT_THAT(weir.process().output(), Not(HasSubstr("sesame")));
}

}  // namespace
}  // namespace weir::notify
