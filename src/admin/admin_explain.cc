// GET /admin/explain: which policies meet a request, what their counters say, and when it clears.

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "admin/admin.h"
#include "admin/subject.h"
#include "base/boot_clock.h"
#include "base/json_writer.h"
#include "limiter/explain.h"
#include "protocol/http/error.h"
#include "protocol/http/response_writer.h"

namespace weir::admin {
namespace {

constexpr std::size_t kMaxAssignments = 100;

/// A question, with the memory that looking for its answer takes.
struct Asked {
  Subject subject;
  std::string domain;  ///< of the entries
  std::vector<policy::Entry> entries;
  policy::Descriptor descriptor;
  policy::Request request;
  std::vector<std::shared_ptr<const limiter::Assigned>> assigned;
  http::Reply reply;
};

void AppendDecisionFields(JsonWriter& json, const Decision& decision) {
  json.Field("allowed", decision.allowed())
      .Field("limit", decision.limit)
      .Field("remaining", decision.remaining)
      .Field("retryAfterMs", http::CeilMillis(decision.retry_after))
      .Field("resetAfterMs", http::CeilMillis(decision.reset_after));
}

/// What Envoys that are connected here may admit by themselves.
void AppendAssignments(JsonWriter& json, const Asked& asked) {
  if (asked.assigned.empty()) return;
  const Nanos now = BootClock::Get().Now();
  json.Key("assignments").BeginArray();
  for (const auto& assigned : asked.assigned) {
    const std::int64_t rate = assigned->per_second;
    const Nanos pushed = assigned->pushed;
    json.BeginObject();
    if (rate < limiter::kUnlimitedPerSecond) {
      json.Field("perSecond", rate);
    } else {
      json.Field("unlimited", true);
    }
    json.Field("demandPerSecond", std::int64_t{assigned->demand});
    if (pushed != 0) {
      const auto age = std::chrono::nanoseconds(std::max<Nanos>(now - pushed, 0));
      json.Field("pushedMsAgo", http::CeilMillis(age));
    }
    json.EndObject();
  }
  json.EndArray();
}

void AppendPolicy(JsonWriter& json, const limiter::ExplainedPolicy& policy) {
  json.BeginObject();
  AppendDecisionFields(json, policy.decision);
  json.Field("policy", policy.policy)
      .Field("quota", policy.quota)
      .Field("bucket", policy.key)
      .Field("source", policy.source)
      .Field("why", policy.why);
  if (!policy.replaced_by.empty()) json.Field("replacedBy", policy.replaced_by);
  if (policy.shadow) json.Field("shadow", true);
  policy::AppendCharging(json, policy.mode, policy.overdraw, policy.charge);
  if (policy.degraded) json.Field("degraded", true);
  json.EndObject();
}

http::Response ToResponse(const Asked& asked, const limiter::Explanation& explanation) {
  if (!explanation.status.ok()) return http::ErrorResponse(explanation.status.error());
  http::Response response;
  JsonWriter json(response.body);
  json.BeginObject();
  AppendDecisionFields(json, explanation.decision);
  json.Field("policy", explanation.policy);
  if (!asked.domain.empty()) json.Field("domain", asked.domain);
  json.Field("why", explanation.why).Key("policies").BeginArray();
  for (const limiter::ExplainedPolicy& policy : explanation.policies) AppendPolicy(json, policy);
  json.EndArray();
  AppendAssignments(json, asked);
  json.EndObject();
  return response;
}

/// Which domain was meant? The answer has them apart as well, for a form to choose from.
http::Response AskWhich(const std::vector<std::string>& domains) {
  const Error error = ManyDomains(domains);
  http::Response response;
  response.status = http::StatusFor(error.code);
  JsonWriter json(response.body);
  json.BeginObject();
  http::AppendErrorFields(json, response.status, error.message);
  json.Key("domains").BeginArray();
  for (const std::string& domain : domains) json.Value(domain);
  json.EndArray().EndObject();
  return response;
}

void ExplainBucket(limiter::PolicyLimiter& limiter, const std::shared_ptr<Asked>& asked) {
  const auto set = limiter.policies();
  const policy::Policy* policy = PoliciesByBucket(*set).Find(asked->subject.bucket);
  if (policy == nullptr) {
    return asked->reply(http::ErrorResponse(404,
                                            "no current policy has this bucket: its quota came "
                                            "with the requests, or its policy was deleted"));
  }
  limiter::ExplainBucket(limiter, {set, policy}, asked->subject.bucket, asked->subject.cost,
                         [asked](const limiter::Explanation& explanation) {
                           asked->reply(ToResponse(*asked, explanation));
                         });
}

void Explain(const limiter::Assignments& assignments, limiter::PolicyLimiter& limiter,
             const http::Request& request, http::Reply reply) {
  auto subject = ReadSubject(request.query);
  if (!subject.ok()) return reply(http::ErrorResponse(subject.error()));
  const auto asked = std::make_shared<Asked>();
  asked->subject = std::move(*subject);
  asked->reply = std::move(reply);
  if (!asked->subject.bucket.empty()) {
    asked->assigned = assignments.FindKey(asked->subject.bucket, kMaxAssignments);
    return ExplainBucket(limiter, asked);
  }
  asked->request.cost = asked->subject.cost;
  asked->request.key = asked->subject.key;
  if (asked->subject.key.empty()) {
    std::vector<std::string> domains = DomainsOf(*limiter.policies(), asked->subject);
    if (domains.size() > 1) return asked->reply(AskWhich(domains));
    asked->domain = std::move(domains.front());
    asked->entries = asked->subject.Descriptor();
    asked->descriptor = asked->entries;
    asked->request.domain = asked->domain;
    asked->request.descriptors = std::span(&asked->descriptor, 1);
    asked->assigned = assignments.Find(asked->domain, asked->descriptor, kMaxAssignments);
  }
  limiter::Explain(limiter, asked->request, [asked](const limiter::Explanation& explanation) {
    asked->reply(ToResponse(*asked, explanation));
  });
}

}  // namespace

void AddAdminExplain(http::Router& router, const AdminParts& parts,
                     limiter::PolicyLimiter& limiter) {
  router.Add("GET", "/admin/explain",
             Guarded(parts.guard, [&limiter, &assignments = parts.assignments](
                                      const http::Request& request, http::Reply reply) {
               Explain(assignments, limiter, request, std::move(reply));
             }));
}

}  // namespace weir::admin
