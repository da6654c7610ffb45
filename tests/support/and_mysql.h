#pragma once

// Separate from the server class, which benches use as well: this needs GoogleTest.

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/mysql_server.h"

namespace weir::test {

/// Stands in for the missing cases, so that the run's summary lists them as skipped.
class WithoutMysql : public ::testing::Test {
 public:
  explicit WithoutMysql(const std::string& why) : why_(why) {}
  void TestBody() override { GTEST_SKIP() << why_; }

 private:
  const std::string& why_;
};

/// Adds `kind` if that server is available; otherwise registers a skipped test that gives the
/// reason.
inline void AddKind(std::vector<std::string>& kinds, const char* kind, const std::string& absence) {
  if (absence.empty()) {
    kinds.emplace_back(kind);
    return;
  }
  static std::set<std::string> told;
  if (!told.insert(kind).second) return;
  ::testing::RegisterTest("Absent", kind, nullptr, nullptr, __FILE__, __LINE__,
                          [&absence]() -> ::testing::Test* { return new WithoutMysql(absence); });
}

/// `kinds` and "mysql", for a suite's INSTANTIATE.
inline std::vector<std::string> AndMysql(std::vector<std::string> kinds) {
  AddKind(kinds, "mysql", MysqlServer::Absence());
  return kinds;
}

/// `kinds`, "mysql" and "mysql8".
inline std::vector<std::string> AndBothMysqls(std::vector<std::string> kinds) {
  kinds = AndMysql(std::move(kinds));
  AddKind(kinds, "mysql8", Mysql8Server::Absence());
  return kinds;
}

}  // namespace weir::test
