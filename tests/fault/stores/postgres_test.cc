#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "fault/stores/store_fault.h"
#include "support/cutting_proxy.h"
#include "support/postgres_server.h"

namespace weir::test {
namespace {

using namespace std::chrono_literals;

using Felt = StoreFault::Felt;

class PostgresFaultTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    server_ = std::make_unique<PostgresServer>();
    proxy_ = std::make_unique<CuttingProxy>(server_->port());
    std::string url = server_->tcp_url();
    const std::string port = ":" + std::to_string(server_->port());
    url.replace(url.find(port), port.size(), ":" + std::to_string(proxy_->port()));
    fault_ = std::make_unique<StoreFault>(url);
  }
  static void TearDownTestSuite() {
    fault_.reset();
    proxy_.reset();
    server_.reset();
  }

  static inline std::unique_ptr<PostgresServer> server_;
  static inline std::unique_ptr<CuttingProxy> proxy_;
  static inline std::unique_ptr<StoreFault> fault_;
};

TEST_F(PostgresFaultTest, KilledAndRestarted) {
  fault_->Expect(Felt::kYes, [] {
    server_->Crash();
    std::this_thread::sleep_for(500ms);
    server_->Start();
  });
}

TEST_F(PostgresFaultTest, StandsStillForTenSeconds) {
  fault_->Expect(Felt::kYes, [] {
    server_->Pause();
    std::this_thread::sleep_for(10s);
    server_->Resume();
  });
}

TEST_F(PostgresFaultTest, ConnectionsCutHalfWayThroughAReply) {
  fault_->Expect(Felt::kPerhaps, [] { EXPECT_TRUE(proxy_->CutReplies()); });
}

TEST_F(PostgresFaultTest, BackendsTerminated) {
  fault_->Expect(Felt::kPerhaps, [] {
    EXPECT_GT(server_->TerminateBackends(), 0);
    std::this_thread::sleep_for(200ms);
  });
}

TEST_F(PostgresFaultTest, ALockHeldBySomebodyElse) {
  // Longer than any wait that the store allows itself.
  fault_->Expect(Felt::kYes, [] {
    server_->Query("BEGIN; LOCK TABLE weir_limits IN EXCLUSIVE MODE; SELECT pg_sleep(2); COMMIT;");
  });
}

}  // namespace
}  // namespace weir::test
