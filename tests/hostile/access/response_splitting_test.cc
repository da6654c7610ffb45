// A client names a key with line breaks or invalid UTF-8. Listing keys later returns complete
// answers, without a header made by the client, and every page of the list.

#include <set>

#include "e2e/service/fixture.h"
#include "support/tcp_connection.h"

namespace weir::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ResponseSplitting : public ServiceTest {
 protected:
  void Throttle(TcpConnection& resp, const std::string& key) {
    resp.Send("*5\r\n$11\r\nCL.THROTTLE\r\n$" + std::to_string(key.size()) + "\r\n" + key +
              "\r\n$2\r\n15\r\n$2\r\n30\r\n$2\r\n60\r\n");
    ASSERT_EQ(resp.ReadThrough("\r\n"), "*5\r\n");
    for (int i = 0; i < 5; ++i) (void)resp.ReadThrough("\r\n");
  }
};

TEST_F(ResponseSplitting, NoKeyEndsAHeaderAndEveryPageOfKeysIsReached) {
  Serve({"--resp", "127.0.0.1:0"});
  TcpConnection resp(weir_->Port("resp"));
  const std::vector<std::string> keys = {
      "a\r\nSet-Cookie: taken=1\r\n\r\n<script>",
      std::string("b\0nul", 5),
      "c\xff\xfe\x80",
      "d\nX-Injected: 1",
      "e\x7f",
      "f plain",
      std::string(300, '\xff'),
  };
  for (const std::string& key : keys) Throttle(resp, key);

  std::set<std::string> pages;
  std::string cursor;
  for (std::size_t page = 0; page < 2 * keys.size(); ++page) {
    // A separate connection, read to its end: anything after an answer is detected.
    TcpConnection http(weir_->Port("http"));
    http.Send("GET /admin/metrics?limit=1&cursor=" + cursor +
              " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    const std::string answer = http.ReadAll();
    ASSERT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
    const std::size_t end = answer.find("\r\n\r\n");
    const std::string head = answer.substr(0, end + 2);
    EXPECT_THAT(head, Not(HasSubstr("\nSet-Cookie")));
    EXPECT_THAT(head, Not(HasSubstr("\nX-Injected")));
    EXPECT_THAT(head,
                HasSubstr("Content-Length: " + std::to_string(answer.size() - end - 4) + "\r\n"));
    pages.insert(answer.substr(end + 4));
    const std::size_t next = head.find("X-Next-Cursor: ");
    if (next == std::string::npos) break;
    cursor = head.substr(next + 15, head.find("\r\n", next) - next - 15);
  }
  EXPECT_EQ(pages.size(), keys.size());
}

TEST_F(ResponseSplitting, ACursorThatNoPageGaveIsRefused) {
  Serve();
  HttpClient client = Client();
  for (const char* cursor : {"%0d%0a", "a", "a%00", "!!!!", "=", "abc%3d"}) {
    EXPECT_EQ(client.Get(std::string("/admin/metrics?cursor=") + cursor).status, 400) << cursor;
    EXPECT_EQ(client.Get(std::string("/admin/policies?cursor=") + cursor).status, 400) << cursor;
  }
}

TEST_F(ResponseSplitting, WhatARequestCarriesInIsNotCarriedOutRaw) {
  Serve();
  TcpConnection http(weir_->Port("http"));
  http.Send(
      "POST /v1/check HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: a\tb\x80\r\n"
      "Content-Length: 13\r\nConnection: close\r\n\r\n{\"key\":\"user\"}");
  EXPECT_THAT(http.ReadAll(), Not(HasSubstr("a\tb")));
}

}  // namespace
}  // namespace weir::test
