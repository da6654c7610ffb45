// GET /admin/explain: which policies meet a request, what their counters say, and when it clears.

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "admin/admin.h"
#include "admin/subject.h"
#include "base/boot_clock.h"
#include "base/json_text.h"
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

void AppendDecisionFields(std::string& out, const Decision& decision) {
  out += decision.allowed() ? "\"allowed\":true" : "\"allowed\":false";
  out.append(",\"limit\":").append(std::to_string(decision.limit));
  out.append(",\"remaining\":").append(std::to_string(decision.remaining));
  out.append(",\"retryAfterMs\":").append(std::to_string(http::CeilMillis(decision.retry_after)));
  out.append(",\"resetAfterMs\":").append(std::to_string(http::CeilMillis(decision.reset_after)));
}

void AppendText(std::string& out, std::string_view name, std::string_view value) {
  out.append(",\"").append(name).append("\":");
  AppendJsonString(out, value);
}

/// What Envoys that are connected here may admit by themselves.
void AppendAssignments(std::string& out, const Asked& asked) {
  if (asked.assigned.empty()) return;
  const Nanos now = BootClock::Get().Now();
  const char* before = ",\"assignments\":[{";
  for (const auto& assigned : asked.assigned) {
    const std::int64_t rate = assigned->per_second;
    const Nanos pushed = assigned->pushed;
    out.append(std::exchange(before, ",{"));
    if (rate < limiter::kUnlimitedPerSecond) {
      out.append("\"perSecond\":").append(std::to_string(rate)).append(",");
    } else {
      out.append("\"unlimited\":true,");
    }
    out.append("\"demandPerSecond\":").append(std::to_string(assigned->demand));
    if (pushed != 0) {
      const auto age = std::chrono::nanoseconds(std::max<Nanos>(now - pushed, 0));
      out.append(",\"pushedMsAgo\":").append(std::to_string(http::CeilMillis(age)));
    }
    out += '}';
  }
  out += ']';
}

http::Response ToResponse(const Asked& asked, const limiter::Explanation& explanation) {
  if (!explanation.status.ok()) return http::ErrorResponse(explanation.status.error());
  http::Response response;
  std::string& body = response.body;
  body = "{";
  AppendDecisionFields(body, explanation.decision);
  AppendText(body, "policy", explanation.policy);
  if (!asked.domain.empty()) AppendText(body, "domain", asked.domain);
  AppendText(body, "why", explanation.why);
  body += ",\"policies\":[";
  for (std::size_t i = 0; i < explanation.policies.size(); ++i) {
    const limiter::ExplainedPolicy& policy = explanation.policies[i];
    body += i == 0 ? "{" : ",{";
    AppendDecisionFields(body, policy.decision);
    AppendText(body, "policy", policy.policy);
    AppendText(body, "quota", policy.quota);
    AppendText(body, "bucket", policy.key);
    AppendText(body, "source", policy.source);
    AppendText(body, "why", policy.why);
    if (!policy.replaced_by.empty()) AppendText(body, "replacedBy", policy.replaced_by);
    if (policy.shadow) body += ",\"shadow\":true";
    body += policy::ChargingJson(policy.mode, policy.overdraw, policy.charge);
    if (policy.degraded) body += ",\"degraded\":true";
    body += '}';
  }
  body += ']';
  AppendAssignments(body, asked);
  body += '}';
  return response;
}

/// Which domain was meant? The answer has them apart as well, for a form to choose from.
http::Response AskWhich(const std::vector<std::string>& domains) {
  http::Response response = http::ErrorResponse(ManyDomains(domains));
  response.body.pop_back();
  for (std::size_t i = 0; i < domains.size(); ++i) {
    response.body += i == 0 ? ",\"domains\":[" : ",";
    AppendJsonString(response.body, domains[i]);
  }
  response.body += "]}";
  return response;
}

void ExplainBucket(limiter::PolicyLimiter& limiter, const std::shared_ptr<Asked>& asked) {
  const auto set = limiter.policies();
  const policy::Policy* policy = PoliciesByBucket(*set).Find(asked->subject.bucket);
  if (policy == nullptr) {
    return asked->reply(http::ErrorResponse(
        404,
        "no policy in force has this bucket: its quota came with requests, or its policy is gone"));
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
