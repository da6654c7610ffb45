// Reads of whole tables are requested repeatedly. They run one by one outside the reactors:
// checks continue, threads do not multiply, and excess requests get an error.

#include <set>

#include "e2e/service/fixture.h"
#include "support/tcp_connection.h"

namespace weir::test {
namespace {

constexpr std::string_view kVerify =
    "GET /admin/rate-limit/verify HTTP/1.1\r\nHost: localhost\r\n\r\n";

class Verify : public ServiceTest {
 protected:
  std::size_t Threads() {
    std::ifstream status("/proc/" + std::to_string(weir_->process().pid()) + "/status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("Threads:")) return std::stoul(line.substr(8));
    }
    return 0;
  }

  void FillSlots(int count) {
    HttpClient client = Client();
    ASSERT_EQ(client
                  .Post("/admin/rate-limit/config",
                        R"({"configName":"c","maxPerWindow":100000,"windowSize":"PT1M"})")
                  .status,
              201);
    std::string body = R"({"configName":"c","events":[)";
    for (int i = 0; i < count; ++i) {
      body += (i == 0 ? "" : ",") + std::string(R"({"eventId":"e)") + std::to_string(i) +
              R"(","configName":"c","requestedTime":"2030-01-01T00:00:00Z"})";
    }
    ASSERT_EQ(client.Post("/api/v1/slots/batch", body + "]}").status, 200);
  }
};

TEST_F(Verify, ManyAtOnceNeitherStopChecksNorTakeThreads) {
  Serve();
  FillSlots(1000);
  ASSERT_EQ(Check(R"({"key":"a"})").status, 200);
  const std::size_t threads = Threads();
  std::vector<TcpConnection> asking;
  for (int i = 0; i < 64; ++i) {
    asking.emplace_back(port_).Send(kVerify);
  }
  std::size_t most = Threads();
  HttpClient client = Client();
  for (int i = 0; i < 50; ++i) {
    ASSERT_EQ(client.Post("/v1/check", R"({"key":"a","cost":0})").status, 200);
    most = std::max(most, Threads());
  }
  EXPECT_LE(most, threads);
  std::set<std::string> answers;
  for (TcpConnection& one : asking) answers.insert(one.ReadThrough("\r\n"));
  EXPECT_TRUE(answers.contains("HTTP/1.1 200 OK\r\n"));
  answers.erase("HTTP/1.1 200 OK\r\n");
  answers.erase("HTTP/1.1 429 Too Many Requests\r\n");
  EXPECT_TRUE(answers.empty()) << *answers.begin();
}

}  // namespace
}  // namespace weir::test
