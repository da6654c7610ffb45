#pragma once

// The faults of MariaDB and MySQL as the store. A program defines which it is before including
// this: `using FaultServer = …`.

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "fault/stores/store_fault.h"
#include "support/cutting_proxy.h"

namespace weir::test {

using namespace std::chrono_literals;
using Felt = StoreFault::Felt;

class MysqlFamilyFaultTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    server_ = std::make_unique<FaultServer>();
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

  static inline std::unique_ptr<FaultServer> server_;
  static inline std::unique_ptr<CuttingProxy> proxy_;
  static inline std::unique_ptr<StoreFault> fault_;
};

TEST_F(MysqlFamilyFaultTest, KilledAndRestarted) {
  fault_->Expect(Felt::kYes, [] {
    server_->Crash();
    std::this_thread::sleep_for(500ms);
    server_->Start();
  });
}

TEST_F(MysqlFamilyFaultTest, StandsStillForTenSeconds) {
  fault_->Expect(Felt::kYes, [] {
    server_->Pause();
    std::this_thread::sleep_for(10s);
    server_->Resume();
  });
}

TEST_F(MysqlFamilyFaultTest, ConnectionsCutHalfWayThroughAReply) {
  fault_->Expect(Felt::kPerhaps, [] { EXPECT_TRUE(proxy_->CutReplies()); });
}

TEST_F(MysqlFamilyFaultTest, ALockHeldBySomebodyElse) {
  // Longer than any lock wait that the store allows itself.
  fault_->Expect(Felt::kYes, [] {
    server_->Query(
        "BEGIN; SELECT COUNT(*) FROM (SELECT 1 FROM weir_limits FOR UPDATE) AS held; "
        "SELECT SLEEP(2); COMMIT;");
  });
}

}  // namespace weir::test
