#pragma once

#include <gtest/gtest.h>

#include "support/mysql_server.h"

namespace weir::test {

/// For a test program that needs a kind of MySQL: all its tests are skipped, with the reason, if
/// it cannot be downloaded. Register it with testing::AddGlobalTestEnvironment.
template <typename Server>
class Needs : public ::testing::Environment {
 public:
  void SetUp() override {
    if (!AbsenceOf<Server>().empty()) GTEST_SKIP() << AbsenceOf<Server>();
  }
};

}  // namespace weir::test
