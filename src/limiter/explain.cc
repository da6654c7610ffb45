#include "limiter/explain.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

namespace weir::limiter {
namespace {

std::string Milliseconds(std::chrono::nanoseconds span) {
  // Rounded up: a client that waits this long is not refused again because of a fraction.
  const std::int64_t whole = span.count() / 1'000'000 + (span.count() % 1'000'000 != 0 ? 1 : 0);
  return std::to_string(whole) + " ms";
}

std::string WhyOne(const ExplainedPolicy& policy, bool unlimited) {
  const Decision& decision = policy.decision;
  if (!policy.replaced_by.empty()) {
    return "does not apply: the more specific policy '" + policy.replaced_by + "' replaces it";
  }
  if (unlimited) return "unlimited: never refuses";
  std::string why;
  const std::string counts =
      std::to_string(decision.remaining) + " of " + std::to_string(decision.limit) + " left";
  switch (decision.verdict) {
    case Verdict::kAllowed:
      why = "would allow: " + counts;
      break;
    case Verdict::kLimited:
      why = "would limit: " + counts + ", retry in " + Milliseconds(decision.retry_after);
      break;
    case Verdict::kNever:
      why = "would never allow: the cost is larger than the limit of " +
            std::to_string(decision.limit);
      break;
    case Verdict::kInvalid:
      why = "invalid: the cost is negative";
      break;
  }
  if (policy.shadow) why += " (shadow: counted, not enforced)";
  if (policy.degraded) why += " (the store could not decide, on_store_error did)";
  return why;
}

std::string WhyAll(const Explanation& explanation) {
  if (explanation.policy.empty() && explanation.decision.verdict == Verdict::kNever) {
    return std::string("refused: ") +
           (explanation.policies.empty() ? "no policy applies" : "only shadow policies apply") +
           " (unmatched: deny)";
  }
  if (explanation.policies.empty()) return "allowed: no policy applies";
  const std::string by = "policy '" + explanation.policy + "'";
  switch (explanation.decision.verdict) {
    case Verdict::kAllowed:
      return explanation.policy.empty() ? "allowed: only shadow policies apply"
                                        : "allowed by " + by;
    case Verdict::kLimited:
      return "limited by " + by + "; retry in " + Milliseconds(explanation.decision.retry_after);
    case Verdict::kNever:
      return "can never be allowed by " + by + ": the cost is larger than its limit";
    case Verdict::kInvalid:
      return "invalid: the cost is negative";
  }
  return {};
}

void SetCharging(const policy::Definition& definition, ExplainedPolicy& policy) {
  policy.mode = definition.mode;
  policy.overdraw = definition.overdraw;
  policy.charge = definition.charge;
}

/// Where a policy is defined, and what sets its shadow if not its file.
std::string PlaceOf(const policy::Definition& definition) {
  if (!definition.shadow_in_file) return definition.source;
  return definition.source +
         (definition.shadow ? ", in shadow by an override" : ", enforced by an override");
}

void AddReplaced(const policy::PolicySet& set, const policy::Request& request,
                 Explanation& explanation) {
  if (!request.key.empty()) return;
  policy::MatchBuffer buffer;
  for (std::size_t i = 0; i < request.descriptors.size(); ++i) {
    set.Match(request.domain, request.descriptors[i], buffer, /*keep_replaced=*/true);
    for (const policy::Applying& applying : buffer.applying) {
      if (applying.replaced_by == nullptr) continue;
      ExplainedPolicy& policy = explanation.policies.emplace_back();
      const policy::Definition& definition = applying.policy->definition;
      policy.policy = definition.name;
      policy.source = PlaceOf(definition);
      policy.quota = definition.quota ? definition.quota->ToString() : "unlimited";
      policy.descriptor = i;
      policy.shadow = definition.shadow;
      SetCharging(definition, policy);
      policy.replaced_by = applying.replaced_by->definition.name;
      policy.why = WhyOne(policy, !definition.quota);
    }
  }
}

/// A peek at one bucket, with the memory that the store writes to.
struct BucketLook {
  std::shared_ptr<const policy::Policy> policy;
  store::Charge charge;
  Decision decision;
  store::Application application;
};

Explanation ExplanationOf(const BucketLook& look) {
  const policy::Definition& definition = look.policy->definition;
  Explanation explanation;
  explanation.status = look.application.status;
  ExplainedPolicy& policy = explanation.policies.emplace_back();
  policy.policy = definition.name;
  policy.source = PlaceOf(definition);
  policy.quota = definition.quota ? definition.quota->ToString() : "unlimited";
  policy.key = look.charge.key;
  policy.shadow = definition.shadow;
  SetCharging(definition, policy);
  policy.decision = look.decision;
  policy.why = WhyOne(policy, !definition.quota);
  if (!definition.shadow) {
    explanation.policy = definition.name;
    explanation.decision = look.decision;
  }
  explanation.why = WhyAll(explanation);
  return explanation;
}

}  // namespace

void Explain(PolicyLimiter& limiter, const policy::Request& request,
             std::function<void(Explanation)> done) {
  auto check = std::make_shared<Check>();
  check->request = request;
  check->op = store::Op::kPeek;
  std::shared_ptr<const policy::PolicySet> set = limiter.policies();
  Check* raw = check.get();
  limiter.Decide(std::span(raw, 1), [check, set, done = std::move(done)] {
    Explanation explanation;
    explanation.status = check->status;
    explanation.decision = check->decision;
    explanation.policy = check->policy;
    for (const PolicyVerdict& verdict : check->verdicts) {
      ExplainedPolicy& policy = explanation.policies.emplace_back();
      policy.policy = verdict.policy;
      policy.source = verdict.rule == nullptr ? "the request" : PlaceOf(verdict.rule->definition);
      policy.quota = verdict.quota == nullptr ? "unlimited" : verdict.quota->ToString();
      policy.key = verdict.key;
      policy.descriptor = verdict.descriptor;
      policy.shadow = verdict.shadow;
      if (verdict.rule != nullptr) SetCharging(verdict.rule->definition, policy);
      policy.degraded = verdict.degraded;
      policy.decision = verdict.decision;
      policy.why = WhyOne(policy, verdict.quota == nullptr);
      if (verdict.rule != nullptr && !verdict.rule->unable.empty()) {
        policy.why += "; this node cannot apply it: " + verdict.rule->unable;
      }
    }
    AddReplaced(*set, check->request, explanation);
    explanation.why = WhyAll(explanation);
    done(std::move(explanation));
  });
}

void ExplainBucket(PolicyLimiter& limiter, std::shared_ptr<const policy::Policy> policy,
                   std::string_view bucket, std::int64_t cost,
                   std::function<void(Explanation)> done) {
  const auto look = std::make_shared<BucketLook>();
  look->policy = std::move(policy);
  look->charge = {bucket, std::min(cost * look->policy->definition.cost, kMaxLimit + 1),
                  look->policy->stored_quota()};
  if (look->charge.quota == nullptr) return done(ExplanationOf(*look));
  if (!look->policy->unable.empty()) {
    look->application.status = Error{Code::kUnavailable, look->policy->unable};
    return done(ExplanationOf(*look));
  }
  look->application.op = store::Op::kPeek;
  look->application.charges = std::span(&look->charge, 1);
  look->application.decisions = std::span(&look->decision, 1);
  limiter.Apply(std::span(&look->application, 1),
                [look, done = std::move(done)] { done(ExplanationOf(*look)); });
}

}  // namespace weir::limiter
