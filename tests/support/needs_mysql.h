#pragma once

#include <gtest/gtest.h>

#include "support/mysql_server.h"

namespace weir::test {

/// For a test program that needs MySQL: all its tests are skipped, and say why, where it cannot be
/// downloaded. Register it with testing::AddGlobalTestEnvironment.
class NeedsMysql : public ::testing::Environment {
 public:
  void SetUp() override {
    if (!MysqlServer::Absence().empty()) GTEST_SKIP() << MysqlServer::Absence();
  }
};

}  // namespace weir::test
