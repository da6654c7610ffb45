// The database hangs with requests under way, and the service is told to stop. It shuts down
// cleanly: whatever its stores still answer, the receiving objects exist.

#include "e2e/service/fixture.h"
#include "support/postgres_server.h"
#include "support/tcp_connection.h"

namespace weir::test {
namespace {

class Shutdown : public ServiceTest {
 protected:
  static std::string Post(const std::string& path, const std::string& body) {
    return "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }

  static std::string Event(int number) {
    return R"({"eventId":"e)" + std::to_string(number) +
           R"(","configName":"c","requestedTime":"2030-01-01T00:00:00Z"})";
  }

  /// A request of varying kind; they are sent on many connections.
  static std::string Request(int number) {
    switch (number % 6) {
      case 0:
        return "GET /admin/rate-limit/verify HTTP/1.1\r\nHost: localhost\r\n\r\n";
      case 1:
        return "GET /api/v1/slots/e1 HTTP/1.1\r\nHost: localhost\r\n\r\n";
      case 2:
        return "DELETE /api/v1/slots/e1 HTTP/1.1\r\nHost: localhost\r\n\r\n";
      case 3:
        return "GET /admin/rate-limit/config HTTP/1.1\r\nHost: localhost\r\n\r\n";
      default:
        return Post("/api/v1/slots", Event(number));
    }
  }
};

TEST_F(Shutdown, WithSlotsUnderWayOnADatabaseThatStandsStill) {
  PostgresServer postgres;
  const auto config = dir_.Write("weir.yaml", "limits: {drain_timeout: 200ms}\n");
  for (int round = 0; round < 3; ++round) {
    Serve({"--config", config.string(), "--slots-store",
           postgres.CreateDatabase("slots" + std::to_string(round))});
    {
      HttpClient client = Client();
      ASSERT_EQ(client
                    .Post("/admin/rate-limit/config",
                          R"({"configName":"c","maxPerWindow":1000,"windowSize":"PT1M"})")
                    .status,
                201);
      ASSERT_EQ(client.Post("/api/v1/slots", Event(1)).status, 200);
    }
    postgres.Pause();
    std::vector<TcpConnection> asking;
    for (int i = 0; i < 48; ++i) asking.emplace_back(port_).Send(Request(i));
    HttpClient probe = Client();
    ASSERT_EQ(probe.Get("/healthz").status, 200);
    EXPECT_EQ(weir_->process().Terminate(), 0);
    postgres.Resume();
  }
}

}  // namespace
}  // namespace weir::test
