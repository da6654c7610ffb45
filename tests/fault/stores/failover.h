#pragma once

// What the fail-over tests share: nodes under load while another server becomes the primary.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "e2e/stores/nodes.h"
#include "support/check_load.h"
#include "support/http_client.h"
#include "support/mysql_family_server.h"
#include "support/wait.h"

namespace weir::test {

using namespace std::chrono_literals;

inline constexpr std::int64_t kLimit = 3000;
inline constexpr const char* kPolicies = R"(
policies:
  - name: hot
    match: { hot: "*" }
    quota: { fixed_window: { limit: 3000, window: 100d } }
    on_store_error: deny
)";
inline constexpr const char* kBody = R"({"descriptors":[{"hot":"1"}]})";

inline std::int64_t Allowed(const std::vector<LoadRecord>& records) {
  return std::count_if(records.begin(), records.end(),
                       [](const LoadRecord& record) { return record.check.allowed; });
}

/// Whether checks are decided by the store: a refusal does not come from a missing store.
inline bool Decides(std::uint16_t port) {
  const HttpResponse answer = HttpClient(port).Post("/v1/check", kBody);
  return answer.body.find("\"degraded\":true") == std::string::npos;
}

inline std::string HostsOf(const std::string& user, const MysqlFamilyServer& one,
                           const MysqlFamilyServer& other) {
  return "mysql://" + user + "@127.0.0.1:" + std::to_string(one.port()) +
         ",127.0.0.1:" + std::to_string(other.port()) + "/weir";
}

/// How many sessions of the nodes the server has.
inline int Sessions(MysqlFamilyServer& server) {
  return std::stoi(
      server.Query("SELECT count(*) FROM information_schema.processlist WHERE user = 'node'"));
}

/// `fail_over` returns when another server takes writes.
inline void ExpectExactAcross(const std::string& store,
                              const std::function<void(Nodes&)>& fail_over) {
  Nodes nodes(2, store, kPolicies, {"--policy-store", "sqlite:", "--threads", "1"});
  CheckLoad before(nodes.ports(), 4, kBody, 1ms);
  ASSERT_TRUE(WaitUntil([&] { return Decides(nodes.ports()[0]); }));
  std::this_thread::sleep_for(300ms);
  fail_over(nodes);
  for (const std::uint16_t port : nodes.ports()) {
    EXPECT_TRUE(WaitUntil([&] { return Decides(port); })) << nodes[0].process().error_output();
  }
  const std::int64_t passed = Allowed(before.Stop());
  EXPECT_GT(passed, 0);
  // Until the limit is used up.
  CheckLoad after(nodes.ports(), 8, kBody);
  EXPECT_TRUE(WaitUntil([&] {
    const HttpResponse answer = HttpClient(nodes.ports()[1]).Post("/v1/check", kBody);
    return answer.body.find("\"allowed\":false") != std::string::npos &&
           answer.body.find("\"degraded\":true") == std::string::npos;
  }));
  const std::int64_t total = passed + Allowed(after.Stop());
  // The checks in WaitUntil were granted, too, and what was committed but not answered is lost.
  EXPECT_LE(total, kLimit);
  EXPECT_GT(total, kLimit / 2);
}

}  // namespace weir::test
