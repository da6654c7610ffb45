// GET /admin/explain: which policies apply to a request, their counters, and when they clear.

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "admin/admin.h"
#include "admin/explain_notes.h"
#include "admin/subject.h"
#include "admin/throttled.h"
#include "base/boot_clock.h"
#include "base/json_writer.h"
#include "limiter/explain.h"
#include "protocol/http/error.h"
#include "protocol/http/response_writer.h"

namespace weir::admin {
namespace {

constexpr std::size_t kMaxAssignments = 100;

/// A request to explain, with the memory that finding the answer needs.
struct Asked {
  Subject subject;
  std::string domain;         ///< of the entries
  std::string note;           ///< what else decides about the same key or entries, or differs
  std::string throttle = {};  ///< the key's bucket of CL.THROTTLE, if it has been charged
  std::optional<EntryRequest> described;
  policy::Request request;
  std::vector<std::shared_ptr<const limiter::Assigned>> assigned;
  std::string hint;                                          ///< if no policy applies
  ExplainNotes notes;                                        ///< what it leaves out
  std::map<std::string, store::HeldHere, std::less<>> held;  ///< of buckets that may be leased
  http::Reply reply;
};

void AppendDecisionFields(JsonWriter& json, const Decision& decision) {
  json.Field("allowed", decision.allowed())
      .Field("limit", decision.limit)
      .Field("remaining", decision.remaining)
      .Field("retryAfterMs", http::CeilMillis(decision.retry_after))
      .Field("resetAfterMs", http::CeilMillis(decision.reset_after));
}

/// What connected Envoys may admit by themselves.
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

/// For a leased policy: what this node may admit without calling the store, whose own numbers do
/// not show what nodes hold.
void AppendHeld(JsonWriter& json, const Asked& asked, std::string_view bucket) {
  const auto found = asked.held.find(bucket);
  if (found == asked.held.end()) return;
  const store::HeldHere& held = found->second;
  json.Field("leased", held.leased).Field("held", held.held).Field("estimated", true);
  if (held.share_per_second > 0) json.Field("sharePerSecond", std::llround(held.share_per_second));
}

void AppendPolicy(JsonWriter& json, const Asked& asked, const limiter::ExplainedPolicy& policy) {
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
  AppendHeld(json, asked, policy.key);
  if (policy.degraded) json.Field("degraded", true);
  json.EndObject();
}

void AppendNotes(JsonWriter& json, const ExplainNotes& notes) {
  if (!notes.search.empty()) json.Field("search", notes.search);
  if (notes.sentences.empty()) return;
  json.Key("notes").BeginArray();
  for (const std::string& sentence : notes.sentences) json.Value(sentence);
  json.EndArray();
}

http::Response ToResponse(const Asked& asked, const limiter::Explanation& explanation) {
  if (!explanation.status.ok()) return http::ErrorResponse(explanation.status.error());
  http::Response response;
  JsonWriter json(response.body);
  json.BeginObject();
  AppendDecisionFields(json, explanation.decision);
  json.Field("policy", explanation.policy);
  if (!asked.domain.empty()) json.Field("domain", asked.domain);
  if (!asked.note.empty()) json.Field("note", asked.note);
  if (!asked.throttle.empty()) json.Field("throttle", asked.throttle);
  json.Field("why",
             asked.throttle.empty()
                 ? explanation.why
                 : "CL.THROTTLE decides by the limit of each command; a check of this key: " +
                       explanation.why);
  if (!asked.hint.empty()) json.Field("hint", asked.hint);
  AppendNotes(json, asked.notes);
  json.Key("policies").BeginArray();
  for (const limiter::ExplainedPolicy& policy : explanation.policies) {
    AppendPolicy(json, asked, policy);
  }
  json.EndArray();
  AppendAssignments(json, asked);
  json.EndObject();
  return response;
}

/// Asks which domain was meant; also lists the domains as a field, for a form to choose from.
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

/// Answers once all reactors have reported what they hold of the leased buckets.
void Answer(const store::FindHeld& find_held, const std::shared_ptr<Asked>& asked,
            const limiter::Explanation& explanation) {
  std::vector<std::string> buckets;
  for (const limiter::ExplainedPolicy& policy : explanation.policies) {
    if (policy.mode != policy::Mode::kExact && !policy.key.empty()) buckets.push_back(policy.key);
  }
  if (buckets.empty() || find_held == nullptr || !explanation.status.ok()) {
    return asked->reply(ToResponse(*asked, explanation));
  }
  find_held(buckets, [asked, explanation, buckets](const std::vector<store::HeldHere>& held) {
    for (std::size_t i = 0; i < buckets.size(); ++i) asked->held.emplace(buckets[i], held[i]);
    asked->reply(ToResponse(*asked, explanation));
  });
}

/// Without a domain in the request: that a check would not look where the policies are. With an
/// address: that the answer is not that of a check.
std::string NoteOf(const policy::PolicySet& policies, const Asked& asked) {
  if (asked.described->only_auth) {
    return "this is how GET /v1/auth decides; to a check of the same entries (POST /v1/check), "
           "neither the default policy nor policies for bare keys apply";
  }
  const std::string& implied = policies.implied_domain();
  if (!asked.subject.domain.empty() || asked.domain == implied ||
      !policies.HasDomain(asked.domain)) {
    return {};
  }
  return "this is about domain '" + asked.domain + "'; a check that names no domain belongs to '" +
         implied + "', where no policy applies to it";
}

ExplainNotes NotesOf(const policy::PolicySet& set, const Asked& asked, bool applies) {
  if (!asked.described) return NotesOnKey(set, asked.subject.key);
  const policy::Descriptor entries = asked.described->descriptor;
  if (!applies && asked.subject.domain.empty()) return NotesOnAnyDomain(set, entries);
  return NotesOn(set, asked.domain, entries, /*misspelt=*/applies);
}

void ExplainRequest(const AdminParts& parts, limiter::PolicyLimiter& limiter,
                    const std::shared_ptr<Asked>& asked) {
  limiter::Explain(limiter, asked->request, [&parts, &limiter, asked](const auto& explanation) {
    asked->notes = NotesOf(*limiter.policies(), *asked, !explanation.policies.empty());
    if (explanation.policies.empty()) {
      const policy::Descriptor entries =
          asked->described ? asked->described->descriptor : policy::Descriptor();
      asked->hint = UnusedIn(*limiter.policies(), asked->subject.domain, entries);
    }
    Answer(parts.find_held, asked, explanation);
  });
}

void ExplainEntries(const AdminParts& parts, limiter::PolicyLimiter& limiter,
                    const std::shared_ptr<Asked>& asked) {
  const auto policies = limiter.policies();
  std::vector<std::string> domains = DomainsOf(*policies, asked->subject);
  if (domains.size() > 1) return asked->reply(AskWhich(domains));
  asked->domain = std::move(domains.front());
  asked->described.emplace(*policies, asked->subject, asked->domain, parts.default_for_requests);
  asked->request = asked->described->request;
  const std::string where = NoteOf(*policies, *asked);
  if (!where.empty() && !asked->note.empty()) asked->note += "; ";
  asked->note += where;
  asked->assigned =
      parts.assignments.Find(asked->domain, asked->described->descriptor, kMaxAssignments);
  ExplainRequest(parts, limiter, asked);
}

/// A bucket that is not charged now because another policy applies to its requests does not show
/// what they get, so the requests are explained instead. False if the bucket is in use; then the
/// note names the other policies that limit its requests.
bool ExplainReplaced(const AdminParts& parts, limiter::PolicyLimiter& limiter,
                     const policy::PolicySet& set, const policy::Policy& policy,
                     const std::shared_ptr<Asked>& asked) {
  std::optional<Subject> subject = SubjectOfBucket(policy, asked->subject.bucket);
  if (!subject) return false;
  const policy::Policy* by = ReplacementOf(set, policy, *subject);
  if (by == nullptr) {
    const std::string others = OthersLimiting(set, policy, *subject);
    if (!others.empty()) asked->note = "requests with these entries are also limited by " + others;
    return false;
  }
  subject->cost = asked->subject.cost;
  asked->subject = std::move(*subject);
  asked->note = "policy '" + by->definition.name + "' replaces '" + policy.definition.name +
                "' for these entries, so this bucket is not charged now; the answer is that to a "
                "request with these entries";
  ExplainEntries(parts, limiter, asked);
  return true;
}

void ExplainBucket(const AdminParts& parts, limiter::PolicyLimiter& limiter,
                   const std::shared_ptr<Asked>& asked) {
  if (asked->subject.bucket.starts_with(kThrottleBucket)) {
    return AskThrottled(limiter, asked->subject.bucket, [&parts, asked](auto full_in) {
      asked->reply(
          http::ErrorResponse(404, AboutThrottled(parts.top, asked->subject.bucket, full_in)));
    });
  }
  const auto set = limiter.policies();
  const policy::Policy* policy = PolicyOfBucket(*set, asked->subject.bucket);
  if (policy == nullptr) {
    std::string bare;
    policy::AppendBareKey(bare, asked->subject.bucket);
    return asked->reply(http::ErrorResponse(
        404,
        "no current policy has this bucket: its quota came with the requests, or its policy was "
        "deleted; if it is a bare key, its bucket is " +
            bare));
  }
  if (ExplainReplaced(parts, limiter, *set, *policy, asked)) return;
  limiter::ExplainBucket(limiter, {set, policy}, asked->subject.bucket, asked->subject.cost,
                         [&parts, asked](const limiter::Explanation& explanation) {
                           Answer(parts.find_held, asked, explanation);
                         });
}

/// A client that calls CL.THROTTLE may be refused whatever the policies say.
void ExplainKey(const AdminParts& parts, limiter::PolicyLimiter& limiter,
                const std::shared_ptr<Asked>& asked) {
  asked->request.cost = asked->subject.cost;
  asked->request.key = asked->subject.key;
  const std::string bucket = std::string(kThrottleBucket) + asked->subject.key;
  AskThrottled(limiter, bucket, [&parts, &limiter, asked, bucket](auto full_in) {
    if (full_in.count() > 0) {
      asked->note = AboutThrottled(parts.top, bucket, full_in);
      asked->throttle = bucket;
    }
    ExplainRequest(parts, limiter, asked);
  });
}

void Explain(const AdminParts& parts, limiter::PolicyLimiter& limiter, const http::Request& request,
             http::Reply reply) {
  auto subject = ReadSubject(request.query);
  if (!subject.ok()) return reply(http::ErrorResponse(subject.error()));
  const auto asked = std::make_shared<Asked>();
  asked->subject = std::move(*subject);
  asked->reply = std::move(reply);
  if (!asked->subject.key.empty()) return ExplainKey(parts, limiter, asked);
  if (asked->subject.bucket.empty()) return ExplainEntries(parts, limiter, asked);
  asked->assigned = parts.assignments.FindKey(asked->subject.bucket, kMaxAssignments);
  ExplainBucket(parts, limiter, asked);
}

}  // namespace

void AddAdminExplain(http::Router& router, const AdminParts& parts,
                     limiter::PolicyLimiter& limiter) {
  router.Add("GET", "/admin/explain", Guarded(parts, Explain, limiter));
}

}  // namespace weir::admin
