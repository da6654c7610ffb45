#include <algorithm>
#include <array>
#include <cstdio>

#include "base/instant.h"
#include "base/json_writer.h"
#include "console.h"
#include "protocol/http/error.h"
#include "trial/chart.h"
#include "trial/replay.h"

namespace weir::app {
namespace {

void AppendTrial(JsonWriter& json, const Trial& trial, std::size_t top) {
  const limiter::CheckCounts checks = trial.Checks();
  json.BeginObject()
      .Field("allowed", checks.allowed)
      .Field("limited", checks.limited)
      .Field("limitedKeys", trial.limited_keys())
      .Field("evictedActive", trial.evicted_active());
  json.Key("policies").BeginArray();
  for (const limiter::PolicyCounts& policy : trial.Policies()) {
    json.BeginObject()
        .Field("policy", policy.policy)
        .Field("allowed", policy.allowed)
        .Field("limited", policy.limited)
        .Field("shadowLimited", policy.shadow_limited)
        .EndObject();
  }
  json.EndArray().Key("topLimited").BeginArray();
  for (const Trial::LimitedKey& key : trial.TopLimited(top)) {
    json.BeginObject()
        .Field("key", key.key)
        .Field("count", key.count)
        .Field("first", FormatInstant(key.first))
        .Field("last", FormatInstant(key.last))
        .EndObject();
  }
  json.EndArray().EndObject();
}

std::string Percent(std::uint64_t part, std::uint64_t whole) {
  std::array<char, 32> text{};
  const double share =
      whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
  const int size = std::snprintf(text.data(), text.size(), "%.2f %%", share);
  return {text.data(), static_cast<std::size_t>(size)};
}

void AppendPolicies(std::string& out, const ReplayResult& result) {
  std::vector<std::string> head = {"policy", ">allowed", ">limited", ">shadow"};
  if (result.current) head.push_back(">limited before");
  Table table(std::move(head));
  const auto before =
      result.current ? result.current->Policies() : std::vector<limiter::PolicyCounts>();
  for (const limiter::PolicyCounts& policy : result.candidate->Policies()) {
    const auto same = std::find_if(before.begin(), before.end(), [&](const auto& other) {
      return other.policy == policy.policy && other.domain == policy.domain;
    });
    std::vector<std::string> row = {policy.policy, Grouped(policy.allowed), Grouped(policy.limited),
                                    Grouped(policy.shadow_limited)};
    if (result.current) row.push_back(same == before.end() ? "" : Grouped(same->limited));
    table.Add(row);
  }
  out += "\n" + table.ToString();
}

void AppendKeys(std::string& out, const Trial& trial, std::size_t top) {
  Table table({"limited most", ">times", "first", "last"});
  for (const Trial::LimitedKey& key : trial.TopLimited(top)) {
    table.Add({key.key, Grouped(key.count), FormatInstant(key.first), FormatInstant(key.last)});
  }
  out += "\n" + table.ToString();
}

void AppendDifferences(std::string& out, const ReplayResult& result) {
  if (result.differences.empty()) return;
  Table table({">line", "at", "request", "ip", "user", "now", "policy"});
  for (const Difference& one : result.differences) {
    table.Add({std::to_string(one.line), FormatInstant(one.at), one.method + " " + one.route,
               one.ip, one.user, one.newly_limited ? "limited" : "allowed", one.policy});
  }
  out += "\n" + table.ToString();
  const std::uint64_t all = result.newly_limited + result.newly_allowed;
  if (all > result.differences.size()) {
    out += Grouped(all - result.differences.size()) + " more requests differ; --top shows more\n";
  }
}

void AppendDifferencesJson(JsonWriter& json, const ReplayResult& result) {
  json.Key("differences").BeginArray();
  for (const Difference& one : result.differences) {
    json.BeginObject()
        .Field("line", one.line)
        .Field("at", FormatInstant(one.at))
        .Field("method", one.method)
        .Field("route", one.route)
        .Field("ip", one.ip)
        .Field("user", one.user)
        .Field("policy", one.policy)
        .Field("now", one.newly_limited ? "limited" : "allowed")
        .EndObject();
  }
  json.EndArray();
}

const char* AskerName(const ReplayRules& rules) {
  switch (rules.asker) {
    case Asker::kAuth:
      return "GET /v1/auth";
    case Asker::kProxy:
      return "weir proxy";
    case Asker::kCheck:
      break;
  }
  return "POST /v1/check";
}

/// Entries that policies use and the log lacks: without a warning, they would look harmless.
void AppendLacking(std::string& out, const ReplayResult& result) {
  const std::array<std::pair<std::string_view, std::uint64_t>, 3> lacking = {
      {{"ip", result.without_ip}, {"user", result.without_user}, {"host", result.without_host}}};
  for (const auto& [entry, count] : lacking) {
    if (count == 0 || !result.candidate->MatchesOn(entry)) continue;
    out += Grouped(count) + " requests have no " + std::string(entry) +
           " in the log: policies that match it were not tried on them\n";
  }
  if (result.rules.asker != Asker::kCheck && result.candidate->MatchesOn("host")) {
    out += std::string("policies that match host were not tried: ") + AskerName(result.rules) +
           " does not tell it (--as check does)\n";
  }
}

/// The outcome of requests that no policy applies to.
void AppendUnmatched(std::string& out, const ReplayResult& result) {
  const Trial& trial = *result.candidate;
  if (trial.domains() > 1) {
    out +=
        "only policies of domain '" + trial.domain() + "' were tried; --domain chooses another\n";
  }
  if (trial.by_default() > 0) {
    const auto& quota = result.rules.default_policy.quota;
    out += Grouped(trial.by_default()) + " requests matched no policy: the default policy (" +
           (quota ? quota->ToString() : "unlimited") + ", for each address) decided, as by " +
           AskerName(result.rules) + "\n";
  }
  if (trial.unmatched() > 0) {
    out += Grouped(trial.unmatched()) + " requests matched no policy and were " +
           (result.rules.deny_unmatched ? "refused (unmatched: deny)\n" : "not limited\n");
  }
}

}  // namespace

std::string ReplayJson(const ReplayResult& result, std::size_t top) {
  return JsonObject([&](JsonWriter& json) {
           json.Field("lines", result.lines)
               .Field("malformed", result.malformed)
               .Field("unmatched", result.candidate->unmatched())
               .Field("byDefaultPolicy", result.candidate->by_default())
               .Field("domain", result.candidate->domain())
               .Field("withoutIp", result.without_ip)
               .Field("withoutUser", result.without_user)
               .Field("withoutHost", result.without_host)
               .Field("outOfOrder", result.out_of_order)
               .Field("format", access_log::FormatName(result.format))
               .Field("from", FormatInstant(result.from))
               .Field("to", FormatInstant(result.to));
           AppendTrial(json.Key("candidate"), *result.candidate, top);
           if (!result.current) return;
           AppendTrial(json.Key("current"), *result.current, top);
           json.Field("newlyLimited", result.newly_limited)
               .Field("newlyAllowed", result.newly_allowed);
           AppendDifferencesJson(json, result);
         }) +
         "\n";
}

std::string ReplayText(const ReplayResult& result, std::size_t top) {
  const limiter::CheckCounts checks = result.candidate->Checks();
  const std::uint64_t requests = result.lines - result.malformed;
  std::string out = Grouped(requests) + " requests from " + FormatInstant(result.from) + " to " +
                    FormatInstant(result.to) + " (" + std::string(FormatName(result.format)) +
                    ")\n";
  if (result.malformed > 0) {
    out += Grouped(result.malformed) + (result.malformed == 1 ? " malformed line was skipped:\n"
                                                              : " malformed lines were skipped:\n");
    for (const std::string& example : result.examples) out += "  " + example + "\n";
  }
  if (result.out_of_order > 0) {
    out += Grouped(result.out_of_order) + " lines were out of order\n";
  }
  AppendLacking(out, result);
  AppendUnmatched(out, result);
  if (result.candidate->evicted_active() > 0) {
    out += Grouped(result.candidate->evicted_active()) +
           " keys were evicted while in use: raise --max-keys\n";
  }
  out += "limited: " + Grouped(checks.limited) + " (" + Percent(checks.limited, requests) +
         "), keys: " + Grouped(result.candidate->limited_keys()) + "\n";
  if (result.current) {
    const limiter::CheckCounts before = result.current->Checks();
    out += "before:  " + Grouped(before.limited) + " (" + Percent(before.limited, requests) + ")\n";
    out += "newly limited " + Grouped(result.newly_limited) + ", newly allowed " +
           Grouped(result.newly_allowed) + "\n";
  }
  AppendPolicies(out, result);
  if (checks.limited > 0) AppendKeys(out, *result.candidate, top);
  AppendDifferences(out, result);
  return out;
}

std::string ReplaySvg(const ReplayResult& result) {
  constexpr std::size_t kPoints = 400;
  const Timeline coarse = result.timeline.Coarsened(kPoints);
  Chart chart;
  chart.title = "Requests and limited requests per second";
  chart.series = {{"requests", "#8aa4c8", {}}, {"limited", "#c0392b", {}}};
  if (result.current) chart.series.push_back({"limited before", "#e0a33c", {}});
  if (coarse.steps().empty()) return DrawChart(chart);
  const double seconds = static_cast<double>(coarse.width()) / 1e9;
  const std::int64_t first = coarse.steps().begin()->first;
  const std::int64_t last = coarse.steps().rbegin()->first;
  chart.from = FormatInstant(first * coarse.width());
  chart.to = FormatInstant((last + 1) * coarse.width());
  for (std::int64_t number = first; number <= last; ++number) {
    const auto found = coarse.steps().find(number);
    const Timeline::Step step = found == coarse.steps().end() ? Timeline::Step{} : found->second;
    chart.series[0].values.push_back(static_cast<double>(step.requests) / seconds);
    chart.series[1].values.push_back(static_cast<double>(step.limited) / seconds);
    if (result.current) {
      chart.series[2].values.push_back(static_cast<double>(step.limited_2) / seconds);
    }
  }
  return DrawChart(chart);
}

}  // namespace weir::app
