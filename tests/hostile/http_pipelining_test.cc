// A client that pipelines requests and reads slowly: answers that are ready late must not overtake
// those that wait for the socket, and nothing may be lost.

#include <sys/ioctl.h>

#include <string>

#include "e2e/service/fixture.h"

namespace weir::test {
namespace {

using HttpPipelining = ServiceTest;

constexpr int kPairs = 400;

// The slot store looks up the config on a separate thread, so that its answer is late.
std::string Pair(int i) {
  const std::string body = R"({"eventId":"e","configName":"bank)" + std::to_string(i) +
                           R"(","requestedTime":"2030-01-31T09:00:00Z"})";
  return "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
         "POST /api/v1/slots HTTP/1.1\r\nHost: x\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

/// Returns once the server has sent as much as it can to a client that does not read.
void AwaitStall(int fd) {
  int before = -1;
  int quiet = 0;
  EXPECT_TRUE(WaitUntil([&] {
    int now = 0;
    ioctl(fd, FIONREAD, &now);
    quiet = now > 0 && now == before ? quiet + 1 : 0;
    before = now;
    return quiet == 100;
  }));
}

TEST_F(HttpPipelining, LateAnswersWaitBehindThoseThatASlowReaderHasNotTaken) {
  Serve();
  HttpClient client = Client();
  std::string requests;
  for (int i = 0; i < kPairs; ++i) requests += Pair(i);
  client.SendRaw(requests);
  AwaitStall(client.connection().fd());
  for (int i = 0; i < kPairs; ++i) {
    const HttpResponse metrics = client.ReadResponse();
    ASSERT_EQ(metrics.status, 200) << i;
    ASSERT_THAT(metrics.body, ::testing::StartsWith("# HELP")) << i;
    const HttpResponse slot = client.ReadResponse();
    ASSERT_EQ(slot.status, 404) << i << slot.body;
    ASSERT_THAT(slot.body, ::testing::HasSubstr("bank" + std::to_string(i)));
  }
  EXPECT_EQ(Client().Get("/healthz").status, 200);
}

}  // namespace
}  // namespace weir::test
