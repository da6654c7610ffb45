// POST /admin/reset/{key} and POST /admin/reset?…: forgets what buckets were charged, and tells
// whether there was anything to forget.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "admin/admin.h"
#include "admin/subject.h"
#include "algorithm/algorithms.h"
#include "base/json_writer.h"
#include "protocol/http/error.h"

namespace weir::admin {
namespace {

/// One state that is to be forgotten: a bucket under one algorithm.
struct Held {
  std::string bucket;
  std::string policy;  ///< empty: of none that is in force
  Quota quota;
};

/// A reset under way, with the memory that the store writes to.
struct Reset {
  std::string key;  ///< as it was given in the path; empty: the query told
  std::vector<Held> states;
  std::vector<store::Charge> charges;  // one per state
  std::vector<Decision> decisions;     // what each state was, and then what each is
  std::vector<store::Application> applications;
  http::Reply reply;
};

/// Quotas that find a state of their algorithm whatever numbers it was charged under: the longest
/// windows there are.
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
  // A quota that came with requests, or of a policy that is gone or is unlimited now.
  for (const Quota& quota : OneOfEach()) states.push_back({bucket, "", quota});
}

/// The bucket of a bare key, and that of a policy for it which is on trial.
void AddKey(const policy::PolicySet& set, std::string_view key, std::vector<Held>& states) {
  std::string bucket;
  policy::AppendBareKey(bucket, key);
  std::string own;
  policy::AppendBucket(own, set.ForKey(key), key);
  const bool same = own == bucket;
  AddBucket(set, std::move(bucket), states);
  if (!same) AddBucket(set, std::move(own), states);
}

/// The buckets of all policies that apply to a descriptor, also of those that only look on.
Result<std::vector<Held>> OfEntries(const policy::PolicySet& set, const Subject& subject) {
  const std::vector<std::string> domains = DomainsOf(set, subject);
  if (domains.size() > 1) return ManyDomains(domains);
  const std::vector<policy::Entry> descriptor = subject.Descriptor();
  policy::MatchBuffer buffer;
  set.Match(domains.front(), descriptor, buffer);
  std::vector<Held> states;
  for (const policy::Applying& applying : buffer.applying) {
    const policy::Policy& policy = *applying.policy;
    if (policy.quota() == nullptr) continue;
    if (!policy.unable.empty()) return Error{Code::kUnavailable, policy.unable};
    Held state{{}, policy.definition.name, *policy.quota()};
    policy::AppendKey(state.bucket, policy.key_parts,
                      std::span(buffer.values).subspan(applying.values_begin));
    states.push_back(std::move(state));
  }
  if (!states.empty()) return states;
  return Error{Code::kNotFound, "no policy limits " + subject.ToString() + ": nothing to reset"};
}

Result<std::vector<Held>> StatesOf(const policy::PolicySet& set, const Subject& subject) {
  if (!subject.entries.empty()) return OfEntries(set, subject);
  std::vector<Held> states;
  if (subject.bucket.empty()) {
    AddKey(set, subject.key, states);
  } else {
    AddBucket(set, subject.bucket, states);
  }
  return states;
}

/// What a name in the path may mean: a bare key, and a bucket as lists and explanations print it.
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

/// One object per bucket, although it may have been asked for under several algorithms.
http::Response Answer(const Reset& reset) {
  std::string buckets;
  JsonWriter list(buckets);
  bool any = false;
  list.BeginArray();
  for (std::size_t i = 0; i < reset.states.size();) {
    const Held& first = reset.states[i];
    bool held = false;
    for (; i < reset.states.size() && reset.states[i].bucket == first.bucket; ++i) {
      held = held || WasHeld(reset, i);
    }
    any = any || held;
    list.BeginObject().Field("bucket", first.bucket);
    if (!first.policy.empty()) list.Field("policy", first.policy);
    list.Field("held", held).EndObject();
  }
  list.EndArray();
  http::Response response;
  JsonWriter json(response.body);
  json.BeginObject();
  if (!reset.key.empty()) json.Field("key", reset.key);
  json.Field("status", "RESET").Field("held", any).RawField("buckets", buckets).EndObject();
  return response;
}

/// Looks at every state and forgets it, in one go. All are looked at first: some stores forget a
/// bucket under all algorithms at once.
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
    reset->reply(Answer(*reset));
  });
}

}  // namespace

void AddAdminReset(http::Router& router, const AdminParts& parts, limiter::PolicyLimiter& limiter) {
  router.Add(
      "POST", "/admin/reset/{*key}",
      Guarded(parts.guard, Audited(parts.audit, "key.reset",
                                   [&limiter](const http::Request& request, http::Reply reply) {
                                     auto reset = std::make_shared<Reset>();
                                     reset->key = request.params[0];
                                     reset->states = StatesOfName(*limiter.policies(), reset->key);
                                     reset->reply = std::move(reply);
                                     Run(limiter, reset);
                                   })));
  const auto by_query = [&limiter](const http::Request& request, http::Reply reply) {
    auto states = StatesOf(*limiter.policies(), *ReadSubject(request.query));
    if (!states.ok()) return reply(http::ErrorResponse(states.error()));
    auto reset = std::make_shared<Reset>();
    reset->states = std::move(*states);
    reset->reply = std::move(reply);
    Run(limiter, reset);
  };
  router.Add("POST", "/admin/reset",
             Guarded(parts.guard, [audited = Audited(parts.audit, "key.reset", by_query)](
                                      const http::Request& request, http::Reply reply) {
               const auto subject = ReadSubject(request.query);
               if (!subject.ok()) return reply(http::ErrorResponse(subject.error()));
               http::Request named = request;
               named.params = {subject->ToString()};  // what the audit log calls it
               audited(named, std::move(reply));
             }));
}

}  // namespace weir::admin
