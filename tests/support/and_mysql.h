#pragma once

// Apart from the server, which benches start as well: this needs GoogleTest.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/mysql_server.h"

namespace weir::test {

/// Stands for the cases that are not there, so that the run's summary lists them as skipped.
class WithoutMysql : public ::testing::Test {
 public:
  void TestBody() override { GTEST_SKIP() << MysqlServer::Absence(); }
};

/// `kinds` and "mysql", for a suite's INSTANTIATE; without it where it cannot be had: then the
/// program has a test that is skipped and says why.
inline std::vector<std::string> AndMysql(std::vector<std::string> kinds) {
  if (MysqlServer::Absence().empty()) {
    kinds.emplace_back("mysql");
    return kinds;
  }
  [[maybe_unused]] static const auto* const once =
      ::testing::RegisterTest("Mysql", "EveryCaseOfThisProgram", nullptr, nullptr, __FILE__,
                              __LINE__, []() -> ::testing::Test* { return new WithoutMysql; });
  return kinds;
}

}  // namespace weir::test
