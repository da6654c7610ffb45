// How much, and for how long, clients that never finish a TLS handshake can make the program hold.

#include <memory>
#include <string>
#include <vector>

#include "e2e/service/fixture.h"
#include "support/certificates.h"
#include "support/stopwatch.h"
#include "support/tcp_connection.h"

namespace weir::test {
namespace {

using namespace std::chrono_literals;

class HalfHandshakes : public ServiceTest {
 protected:
  void SetUp() override {
    const Certificates::Pair server = made_.Issue("localhost", "server");
    const auto config = dir_.Write(
        "weir.yaml", "threads: 1\njournal: off\ntls: {cert: " + server.certificate.string() +
                         ", key: " + server.key.string() + "}\n");
    Serve({"--config", config.string(), "--grpc", "127.0.0.1:0", "--resp", "127.0.0.1:0"});
  }

  /// Opens connections to every port and sends `bytes` on each.
  void Open(int count, std::string_view bytes) {
    for (const char* door : {"http", "grpc", "resp"}) {
      for (int i = 0; i < count; ++i) {
        open_.push_back(std::make_unique<TcpConnection>(weir_->Port(door)));
        if (!bytes.empty()) open_.back()->Send(bytes);
      }
    }
  }

  std::string Ask(const std::string& path) {
    ChildProcess curl({"curl", "-s", "--noproxy", "*", "--max-time", "120", "--cacert",
                       made_.authority().string(),
                       "https://localhost:" + std::to_string(weir_->Port("http")) + path});
    EXPECT_EQ(curl.Wait(), 0);
    return curl.output();
  }

  /// When this returns, all earlier bytes have been read, on every port: all have one thread.
  void WaitForAll() {
    ASSERT_TRUE(WaitUntil([&] {
      const std::string all = std::to_string(open_.size() + ++asked_);
      return Ask("/metrics").find("\nweir_connections_accepted_total " + all + "\n") !=
             std::string::npos;
    }));
    ++asked_;
    Ask("/healthz");
  }

  Certificates made_;
  std::vector<std::unique_ptr<TcpConnection>> open_;
  std::size_t asked_ = 0;
};

TEST_F(HalfHandshakes, TakeNoMemoryForWhatIsOnlyAnnounced) {
  WaitForAll();
  const std::size_t before = Resident();
  // A record of four bytes, which starts a hello of 127 KiB.
  constexpr std::string_view kAnnounced("\x16\x03\x01\x00\x04\x01\x01\xff\x00", 9);
  constexpr int kEach = 200;
  Open(kEach, kAnnounced);
  WaitForAll();
  EXPECT_LT(Resident(), before + 3 * kEach * (std::size_t{64} << 10U));
}

TEST_F(HalfHandshakes, DoNotHoldUpAShutdown) {
  Open(3, "");
  WaitForAll();
  const Stopwatch stopwatch;
  EXPECT_EQ(weir_->process().Terminate(), 0);
  EXPECT_LT(stopwatch.elapsed(), 5s);
}

}  // namespace
}  // namespace weir::test
