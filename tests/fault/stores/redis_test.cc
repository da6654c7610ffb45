#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "fault/stores/store_fault.h"
#include "support/cutting_proxy.h"
#include "support/redis_server.h"

namespace weir::test {
namespace {

using namespace std::chrono_literals;
using Felt = StoreFault::Felt;

class RedisFaultTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    RedisOptions options;
    options.durable = true;
    server_ = std::make_unique<RedisServer>(options);
    proxy_ = std::make_unique<CuttingProxy>(server_->port());
    fault_ = std::make_unique<StoreFault>("redis://127.0.0.1:" + std::to_string(proxy_->port()));
  }
  static void TearDownTestSuite() {
    fault_.reset();
    proxy_.reset();
    server_.reset();
  }

  static inline std::unique_ptr<RedisServer> server_;
  static inline std::unique_ptr<CuttingProxy> proxy_;
  static inline std::unique_ptr<StoreFault> fault_;
};

TEST_F(RedisFaultTest, KilledAndRestarted) {
  fault_->Expect(Felt::kYes, [] {
    server_->Kill();
    std::this_thread::sleep_for(500ms);
    server_->Start();
  });
}

TEST_F(RedisFaultTest, StandsStillForTenSeconds) {
  fault_->Expect(Felt::kYes, [] {
    server_->Pause();
    std::this_thread::sleep_for(10s);
    server_->Resume();
  });
}

TEST_F(RedisFaultTest, ConnectionsCutHalfWayThroughAReply) {
  fault_->Expect(Felt::kPerhaps, [] { EXPECT_TRUE(proxy_->CutReplies()); });
}

TEST_F(RedisFaultTest, ScriptsAndKeysFlushed) {
  fault_->Expect(Felt::kNo, [] {
    server_->Command({"SCRIPT", "FLUSH"});
    std::this_thread::sleep_for(100ms);
    server_->Command({"FLUSHALL"});
  });
}

}  // namespace
}  // namespace weir::test
