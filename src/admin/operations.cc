#include "admin/operations.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::admin {
namespace {

using telemetry::Label;

http::Response Text(int status, std::string body) {
  http::Response response;
  response.status = status;
  response.content_type = "text/plain; charset=utf-8";
  response.body = std::move(body);
  return response;
}

constexpr const char* kStoreDown = "the store is down";

http::Response Ready(const Lifecycle& lifecycle, const std::optional<StoreHealth>& store,
                     const std::vector<Probe>& probes) {
  if (!lifecycle.ready()) return Text(503, "not ready\n");
  if (const std::string why = WhyNotReady(store); !why.empty()) {
    return Text(503, "not ready: " + why + "\n");
  }
  std::string away = store && !store->up ? kStoreDown : "";
  for (const Probe& probe : probes) {
    if (probe.up()) continue;
    if (!away.empty()) away += ", ";
    away += "the database of " + probe.name + " is down";
  }
  return Text(200, away.empty() ? "ready\n" : "ready, degraded: " + away + "\n");
}

void PolicyFamily(telemetry::TextWriter& out, std::string_view name, std::string_view help,
                  const std::vector<limiter::PolicyCounts>& policies,
                  std::uint64_t limiter::PolicyCounts::*count) {
  out.Counter(name, help);
  for (const limiter::PolicyCounts& policy : policies) {
    const std::array<Label, 2> labels = {{{"domain", policy.domain}, {"policy", policy.policy}}};
    out.Sample(policy.*count, labels);
  }
}

}  // namespace

std::string WhyNotReady(const std::optional<StoreHealth>& store) {
  if (!store) return {};
  if (!store->policies_known) return "the policies have not been read yet";
  return store->up || store->serving ? "" : kStoreDown;
}

std::vector<std::string> WhatIsDown(const std::optional<StoreHealth>& store, bool policies_up,
                                    const std::vector<Probe>& probes) {
  std::vector<std::string> down;
  if (store && !store->up) down.emplace_back("store");
  if (!policies_up) down.emplace_back("policies");
  for (const Probe& probe : probes) {
    if (!probe.up()) down.push_back(probe.name);
  }
  return down;
}

void AddOperations(http::Router& router, const Lifecycle& lifecycle,
                   const telemetry::Registry& registry, const StoreHealthOf& store_health,
                   const std::vector<Probe>& probes) {
  router.Add("GET", "/healthz",
             [](const http::Request&, const http::Reply& reply) { reply(Text(200, "ok\n")); });
  router.Add("GET", "/readyz",
             [&lifecycle, &store_health, &probes](const http::Request&, const http::Reply& reply) {
               reply(Ready(lifecycle, store_health(), probes));
             });
  router.Add("GET", "/metrics", [&registry](const http::Request&, const http::Reply& reply) {
    http::Response response = Text(200, registry.Render());
    response.content_type = "text/plain; version=0.0.4; charset=utf-8";
    reply(std::move(response));
  });
}

void CollectDecisions(const limiter::Counters& counters, telemetry::TextWriter& out) {
  const limiter::CheckCounts checks = counters.Checks();
  out.Counter("weir_allowed_total", "Checks allowed.");
  out.Sample(checks.allowed);
  out.Counter("weir_blocked_total", "Checks refused by a limit.");
  out.Sample(checks.limited);
  out.Counter("weir_check_errors_total", "Checks that could not be decided.");
  out.Sample(checks.errors);
  out.Counter("weir_degraded_total", "Checks decided by on_store_error while the store was down.");
  out.Sample(checks.degraded);
  out.Counter(
      "weir_unmatched_total",
      "Checks that no policy applied to: allowed without a limit, or refused (unmatched: deny).");
  out.Sample(checks.unmatched);
  const auto policies = counters.Policies(kMaxPolicyLabels);
  using Counts = limiter::PolicyCounts;
  PolicyFamily(out, "weir_policy_allowed_total", "Checks allowed, by policy.", policies,
               &Counts::allowed);
  PolicyFamily(out, "weir_policy_blocked_total", "Checks refused, by policy.", policies,
               &Counts::limited);
  PolicyFamily(out, "weir_policy_shadow_blocked_total",
               "Checks that a shadow policy would have refused, by policy.", policies,
               &Counts::shadow_limited);
  PolicyFamily(out, "weir_policy_errors_total", "Checks decided by on_store_error, by policy.",
               policies, &Counts::errors);
  const auto known = [](const Counts& counts) { return counts.remaining.has_value(); };
  if (std::none_of(policies.begin(), policies.end(), known)) return;
  out.Gauge("weir_tokens_remaining",
            "Permits left after the policy's last decision, whichever the key.");
  for (const Counts& counts : policies) {
    if (!known(counts)) continue;
    const std::array<telemetry::Label, 2> labels = {
        {{"domain", counts.domain}, {"policy", counts.policy}}};
    out.Sample(*counts.remaining, labels);
  }
}

void CollectKeys(std::size_t keys, const EngineStats& stats, telemetry::TextWriter& out) {
  out.Gauge("weir_keys", "Keys held in memory.");
  out.Sample(std::uint64_t{keys});
  out.Counter("weir_keys_created_total", "Keys seen for the first time.");
  out.Sample(stats.created);
  out.Counter("weir_evictions_total", "Keys evicted to make room.");
  out.Sample(stats.evicted);
  out.Counter("weir_evictions_active_total",
              "Evicted keys that still had charges, so their quota started over: raise max_keys.");
  out.Sample(stats.evicted_active);
  out.Counter("weir_key_hits_total", "Keys charged, allowed or refused.");
  out.Sample(stats.hits);
  out.Counter("weir_key_contention_total",
              "Times a check waited for another thread's lock on the same shard.");
  out.Sample(stats.contended);
}

void CollectReloads(const policy::Catalog::Status& status, telemetry::TextWriter& out) {
  out.Counter("weir_policy_reloads_total", "Successful reloads of policy files.");
  out.Sample(status.reloads);
  out.Counter("weir_policy_reload_failures_total",
              "Failed reloads: a file was invalid, and nothing changed.");
  out.Sample(status.failed_reloads);
  out.Gauge("weir_policy_reload_success", "1 if the last reload of the policy files succeeded.");
  out.Sample(std::uint64_t{status.problems.empty() ? 1U : 0U});
  out.Gauge("weir_policies_not_applied",
            "Stored policies that this node cannot apply; their on_store_error decides.");
  out.Sample(std::uint64_t{status.unable.size()});
  out.Gauge("weir_policy_reload_timestamp_seconds", "When the policy files were last read.");
  out.Sample(static_cast<double>(status.last_reload) / 1e9);
}

void CollectPolicyStore(const policy::PolicyHealth& health, telemetry::TextWriter& out) {
  out.Gauge("weir_policy_store_up", "1 if the last query to the policy store succeeded.");
  out.Sample(std::uint64_t{health.up ? 1U : 0U});
  out.Gauge("weir_policy_store_change",
            "The latest change of the shared policy store that this node applies.");
  out.Sample(static_cast<std::uint64_t>(health.change));
}

void CollectConnections(net::ReactorPool& pool, telemetry::TextWriter& out) {
  std::uint64_t open = 0;
  std::uint64_t accepted = 0;
  std::uint64_t rejected = 0;
  for (std::size_t i = 0; i < pool.size(); ++i) {
    const net::ReactorStats& stats = pool.reactor(i).stats();
    open += stats.open.load(std::memory_order_relaxed);
    accepted += stats.accepted.load(std::memory_order_relaxed);
    rejected += stats.rejected.load(std::memory_order_relaxed);
  }
  out.Gauge("weir_connections", "Open connections of all protocols.");
  out.Sample(open);
  out.Counter("weir_connections_accepted_total", "Connections accepted.");
  out.Sample(accepted);
  out.Counter("weir_connections_rejected_total", "Connections refused because too many were open.");
  out.Sample(rejected);
}

}  // namespace weir::admin
