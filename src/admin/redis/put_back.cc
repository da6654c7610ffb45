#include "admin/redis/put_back.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "admin/redis/records.h"
#include "admin/redis/scripts.h"

namespace weir::policy::redis {
namespace {

using weir::redis::Command;

/// How far the count skips ahead.
constexpr std::int64_t kLeap = 1000;
/// Policies per call: the server must not be blocked for long.
constexpr std::size_t kAtOnce = 500;
/// Earlier epochs that are remembered: one for each loss of policies.
constexpr std::size_t kMostPast = 100;

Command Begin(const Mark& known) { return Command{known.epoch}.Add(known.changes); }

/// Adds the latest epochs: the count never goes back from one to the next.
void AddPast(const Past& past, Command& command) {
  std::vector<std::pair<std::int64_t, std::string_view>> latest;
  for (const auto& [epoch, changes] : past) latest.emplace_back(changes, epoch);
  std::sort(latest.rbegin(), latest.rend());
  if (latest.size() > kMostPast) latest.resize(kMostPast);
  for (const auto& [changes, epoch] : latest) command.Add(epoch).Add(changes);
}

}  // namespace

Status PutBack(Session& session, const Mark& known, const Past& past, const PolicyMap& policies,
               const PolicyMap& there) {
  std::int64_t last_policy = 0;
  std::set<std::int64_t> taken;
  for (const auto& [key, policy] : policies) last_policy = std::max(last_policy, policy.id);
  for (const auto& [key, policy] : there) {
    last_policy = std::max(last_policy, policy.id);
    taken.insert(policy.id);
  }
  std::size_t count = 0;
  Command page = Begin(known);
  const auto put = [&]() -> Status {
    if (count == 0) return {};
    Status done = session.Call(PutBackScript(), {kState, kPolicies}, page).status;
    page = Begin(known);
    count = 0;
    return done;
  };
  for (const auto& [key, policy] : policies) {
    if (there.contains(key)) continue;
    StoredPolicy missing = policy;
    // A server that has lost its policies assigns new ones ids from 1.
    if (taken.contains(missing.id)) missing.id = ++last_policy;
    page.Add(key).Add(PolicyRecord(missing));
    if (++count < kAtOnce) continue;
    if (Status done = put(); !done.ok()) return done;
  }
  if (Status done = put(); !done.ok()) return done;
  Command finish = Begin(known);
  finish.Add(kLeap).Add(last_policy).Add(NewEpoch());
  AddPast(past, finish);
  return session.Call(FinishScript(), {kState}, finish).status;
}

}  // namespace weir::policy::redis
