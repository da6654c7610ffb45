// POST /admin/reset/{key} and POST /admin/reset?…: forgets what buckets were charged, and reports
// whether there was anything to forget.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "admin/admin.h"
#include "admin/subject.h"
#include "admin/throttled.h"
#include "algorithm/algorithms.h"
#include "base/json_writer.h"
#include "protocol/http/error.h"

namespace weir::admin {
namespace {

/// One state to forget: a bucket under one algorithm.
struct Held {
  std::string bucket;
  std::string policy;  ///< empty: of no policy in force
  Quota quota;
  bool beside = false;  ///< may not exist: named in the answer only if there was anything
};

/// A reset in progress, with the memory that the store writes to.
struct Reset {
  std::string key;  ///< as given in the path; empty: the query named it
  std::vector<Held> states;
  std::vector<store::Charge> charges;  // one per state
  std::vector<Decision> decisions;     // each state before the reset, then each state after it
  std::vector<store::Application> applications;
  http::Reply reply;
  http::Reply audited;  ///< for an answer that reports that something was forgotten
};

/// A request whose buckets are looked for.
struct Sought {
  std::string domain;
  std::optional<EntryRequest> described;
  limiter::Check check;
};

/// Quotas that match a state of their algorithm whatever numbers it was charged under: they have
/// the longest possible windows.
const std::vector<Quota>& OneOfEach() {
  static const std::vector<Quota> kQuotas = [] {
    std::vector<Quota> quotas;
    for (const algorithm::Descriptor& each : algorithm::kAlgorithms) {
      quotas.push_back(*each.make({.limit = 1, .window = kMaxWindow, .buckets = 2}));
    }
    return quotas;
  }();
  return kQuotas;
}

void AddBucket(const policy::PolicySet& set, std::string bucket, std::vector<Held>& states) {
  const policy::Policy* policy = PolicyOfBucket(set, bucket);
  if (policy != nullptr && policy->quota() != nullptr) {
    states.push_back({std::move(bucket), policy->definition.name, *policy->quota()});
    return;
  }
  // A quota that came with requests, or of a policy that was deleted or is unlimited now.
  for (const Quota& quota : OneOfEach()) states.push_back({bucket, "", quota});
}

/// The bucket of a bare key, that of a shadow policy for it, and that of CL.THROTTLE.
void AddKey(const policy::PolicySet& set, std::string_view key, std::vector<Held>& states) {
  std::string bucket;
  policy::AppendBareKey(bucket, key);
  std::string own;
  policy::AppendBucket(own, set.ForKey(key), key);
  const bool same = own == bucket;
  AddBucket(set, std::move(bucket), states);
  if (!same) AddBucket(set, std::move(own), states);
  // The name of a bucket of CL.THROTTLE is never shortened: a longer key was refused.
  if (kThrottleBucket.size() + key.size() > policy::kMaxKeyBytes) return;
  states.push_back({std::string(kThrottleBucket).append(key), "", AnyThrottle(), true});
}

using FoundStates = std::function<void(Result<std::vector<Held>>)>;

Result<std::vector<Held>> StatesOf(const limiter::Check& check, const Subject& subject) {
  if (!check.status.ok()) return check.status.error();
  std::vector<Held> states;
  for (const limiter::PolicyVerdict& verdict : check.verdicts) {
    if (verdict.quota == nullptr) continue;
    if (verdict.rule != nullptr && !verdict.rule->unable.empty()) {
      return Error{Code::kUnavailable, verdict.rule->unable};
    }
    states.push_back({std::string(verdict.key), std::string(verdict.policy), *verdict.quota});
  }
  if (!states.empty()) return states;
  return Error{Code::kNotFound, "no policy limits " + subject.ToString() + ": nothing to reset"};
}

/// The buckets of all policies that apply to a request, including shadow policies: the same as in
/// /admin/explain.
void FindByEntries(const AdminParts& parts, limiter::PolicyLimiter& limiter, const Subject& subject,
                   const FoundStates& done) {
  const auto set = limiter.policies();
  const std::vector<std::string> domains = DomainsOf(*set, subject);
  if (domains.size() > 1) return done(ManyDomains(domains));
  const auto kept = std::make_shared<const Subject>(subject);
  const auto sought = std::make_shared<Sought>();
  sought->domain = domains.front();
  sought->described.emplace(*set, *kept, sought->domain, parts.default_for_requests);
  sought->check.request = sought->described->request;
  sought->check.op = store::Op::kPeek;
  limiter.Decide(std::span(&sought->check, 1),
                 [kept, sought, done] { done(StatesOf(sought->check, *kept)); });
}

void FindStates(const AdminParts& parts, limiter::PolicyLimiter& limiter, const Subject& subject,
                const FoundStates& done) {
  if (!subject.entries.empty()) return FindByEntries(parts, limiter, subject, done);
  std::vector<Held> states;
  const auto set = limiter.policies();
  if (subject.bucket.empty()) {
    AddKey(*set, subject.key, states);
  } else {
    AddBucket(*set, subject.bucket, states);
  }
  done(std::move(states));
}

/// What a name in the path may mean: a bare key, or a bucket as lists and explanations print it.
std::vector<Held> StatesOfName(const policy::PolicySet& set, const std::string& name) {
  std::vector<Held> states;
  AddKey(set, name, states);
  if (name.find('|') != std::string::npos) AddBucket(set, name, states);
  return states;
}

bool WasHeld(const Reset& reset, std::size_t state) {
  const Decision& before = reset.decisions[state];
  return before.remaining < before.limit || before.reset_after.count() > 0;
}

bool AnyHeld(const Reset& reset) {
  for (std::size_t i = 0; i < reset.states.size(); ++i) {
    if (WasHeld(reset, i)) return true;
  }
  return false;
}

/// One object per bucket, although it may have been looked up under several algorithms.
http::Response Answer(const Reset& reset) {
  std::string buckets;
  JsonWriter list(buckets);
  list.BeginArray();
  for (std::size_t i = 0; i < reset.states.size();) {
    const Held& first = reset.states[i];
    bool held = false;
    for (; i < reset.states.size() && reset.states[i].bucket == first.bucket; ++i) {
      held = held || WasHeld(reset, i);
    }
    if (first.beside && !held) continue;
    list.BeginObject().Field("bucket", first.bucket);
    if (!first.policy.empty()) list.Field("policy", first.policy);
    list.Field("held", held).EndObject();
  }
  list.EndArray();
  http::Response response;
  JsonWriter json(response.body);
  json.BeginObject();
  if (!reset.key.empty()) json.Field("key", reset.key);
  json.Field("status", "RESET")
      .Field("held", AnyHeld(reset))
      .RawField("buckets", buckets)
      .EndObject();
  return response;
}

/// Peeks at every state and forgets it, in one call. Peeks at all first, since some stores forget a
/// bucket under all algorithms together.
void Run(limiter::PolicyLimiter& limiter, const std::shared_ptr<Reset>& reset) {
  for (const Held& state : reset->states) {
    if (state.bucket.size() <= policy::kMaxKeyBytes) continue;
    return reset->reply(http::ErrorResponse(
        400, "the key is longer than " + std::to_string(policy::kMaxKeyBytes) + " bytes"));
  }
  const std::size_t count = reset->states.size();
  reset->decisions.resize(2 * count);
  for (const Held& state : reset->states) reset->charges.push_back({state.bucket, 1, &state.quota});
  for (std::size_t i = 0; i < 2 * count; ++i) {
    store::Application& application = reset->applications.emplace_back();
    application.op = i < count ? store::Op::kPeek : store::Op::kReset;
    application.charges = std::span(reset->charges).subspan(i % count, 1);
    application.decisions = std::span(reset->decisions).subspan(i, 1);
  }
  limiter.Apply(reset->applications, [reset] {
    for (const store::Application& application : reset->applications) {
      if (!application.status.ok()) {
        return reset->reply(http::ErrorResponse(application.status.error()));
      }
    }
    // A misspelled name changes nothing, so it is not logged.
    (AnyHeld(*reset) ? reset->audited : reset->reply)(Answer(*reset));
  });
}

}  // namespace

void AddAdminReset(http::Router& router, const AdminParts& parts, limiter::PolicyLimiter& limiter) {
  const auto begin = [&parts](const http::Request& request, const http::Reply& reply) {
    auto reset = std::make_shared<Reset>();
    reset->reply = reply;
    reset->audited = AuditedReply(parts.audit, "key.reset", request, reply);
    return reset;
  };
  router.Add("POST", "/admin/reset/{*key}",
             Guarded(parts.guard, WithoutQuery([&limiter, begin](const http::Request& request,
                                                                 const http::Reply& reply) {
                       const auto reset = begin(request, reply);
                       reset->key = request.params[0];
                       reset->states = StatesOfName(*limiter.policies(), reset->key);
                       Run(limiter, reset);
                     })));
  router.Add("POST", "/admin/reset",
             Guarded(parts.guard, [&parts, &limiter, begin](const http::Request& request,
                                                            const http::Reply& reply) {
               const auto subject = ReadSubject(request.query);
               if (!subject.ok()) return reply(http::ErrorResponse(subject.error()));
               http::Request named = request;
               named.params = {subject->ToString()};  // its name in the audit log
               const auto reset = begin(named, reply);
               FindStates(parts, limiter, *subject,
                          [&limiter, reset](Result<std::vector<Held>> states) {
                            if (!states.ok())
                              return reset->reply(http::ErrorResponse(states.error()));
                            reset->states = std::move(*states);
                            Run(limiter, reset);
                          });
             }));
}

}  // namespace weir::admin
