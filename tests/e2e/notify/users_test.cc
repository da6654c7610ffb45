// Users and the limits of their channels, listed in pages.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/http_client.h"
#include "support/temp_dir.h"
#include "support/weir_process.h"

namespace weir::notify {
namespace {

using testing::ElementsAre;

/// The value of a field, encoded for a query string.
std::string Field(const std::string& body, const std::string& name) {
  const std::string mark = '"' + name + R"(":")";
  const std::size_t found = body.find(mark);
  if (found == std::string::npos) return {};
  const std::size_t start = found + mark.size();
  std::string value = body.substr(start, body.find('"', start) - start);
  // The separator between a user and a channel in the name of a row.
  if (const std::size_t at = value.find("\\u001f"); at != std::string::npos) {
    value.replace(at, 6, "%1F");
  }
  return value;
}

TEST(NotifyUsers, PagesMayEndWithTheLimitOfAChannel) {
  const test::TempDir dir;
  test::WeirProcess weir({"serve", "--http", "127.0.0.1:0", "--grpc", "off", "--resp", "off",
                          "--data", (dir / "data").string()});
  test::HttpClient client(weir.Port("http"));
  for (const std::string user : {"41", "42"}) {
    ASSERT_EQ(
        client.Post("/api/config", R"({"userId":")" + user + R"(","rateLimit":5,"timeWindow":10})")
            .status,
        200);
    ASSERT_EQ(client
                  .Send("PUT", "/api/config/" + user + "/channels/email",
                        R"({"rateLimit":2,"timeWindow":60})")
                  .status,
              200);
  }
  std::vector<std::string> listed;
  std::string next;
  do {
    const test::HttpResponse page =
        client.Get("/api/config?limit=1" + (next.empty() ? "" : "&after=" + next));
    ASSERT_EQ(page.status, 200) << page.body;
    const std::string user = Field(page.body, "userId");
    if (!user.empty()) listed.push_back(user + "/" + Field(page.body, "channel"));
    next = Field(page.body, "next");
  } while (!next.empty() && listed.size() < 10);
  EXPECT_THAT(listed, ElementsAre("41/", "41/email", "42/", "42/email"));
  EXPECT_EQ(client.Get("/api/config?after=%00").status, 400);
}

}  // namespace
}  // namespace weir::notify
