#include "admin/policy_warnings.h"

#include "algorithm/algorithms.h"
#include "base/error.h"
#include "policy/long_leases.h"
#include "policy/unreachable.h"

namespace weir::http {
namespace {

/// Not in what the service itself has returned: that contains the numbers of all algorithms.
std::vector<std::string> UnusedNumbers(const policy::StoredPolicy& policy,
                                       const GivenFields& given) {
  std::vector<std::string> unused;
  if (policy.type.is_override() || policy.unlimited) return unused;
  if (given.contains("id") || given.contains("version")) return unused;
  const algorithm::Descriptor& kind = algorithm::Of(policy.type.algorithm());
  const auto note = [&](std::string_view field, bool unused_value) {
    const auto found = given.find(field);
    if (!unused_value || found == given.end()) return;
    unused.push_back(found->second + " is not used by " + std::string(kind.type));
    if (field != "windowSeconds") return;
    unused.back() += "; " + std::to_string(policy.refill_rate) + " permits come back each second";
  };
  note("refillRate", !kind.refills() && policy.refill_rate != 0);
  note("windowSeconds", kind.refills() && policy.window_seconds != 0);
  note("buckets", !kind.has_buckets && policy.buckets != 0);
  return unused;
}

/// A missing number gets its default, which may not be what was meant.
void NoteMissing(const policy::StoredPolicy& policy, const GivenFields& given,
                 std::vector<std::string>& warnings) {
  if (policy.type.is_override() || policy.unlimited) return;
  if (!given.contains("capacity")) {
    warnings.push_back("capacity is missing; the limit is " + std::to_string(policy.capacity));
  }
  if (algorithm::Of(policy.type.algorithm()).refills()) {
    if (given.contains("refillRate")) return;
    warnings.push_back("refillRate is missing; " + std::to_string(policy.refill_rate) +
                       " permits come back each second");
  } else if (!given.contains("windowSeconds")) {
    warnings.push_back("windowSeconds is missing; it is " + std::to_string(policy.window_seconds));
  }
}

/// Warns if the policy may not apply to what was meant.
void NoteUnmet(const policy::StoredPolicy& policy, const GivenFields& given,
               std::vector<std::string>& warnings) {
  if (policy.type.is_override()) return;
  if (!policy.has_match && given.contains("domain")) {
    warnings.emplace_back("domain is not used without match: the policy is for a bare key");
  }
  if (const auto why = policy::WhyUnreachable(policy.match)) {
    warnings.push_back("the policy applies to no request: " + *why);
  } else if (const auto evaded = policy::WhyEvaded(policy.match); evaded && !policy.unlimited) {
    warnings.push_back("the policy can be evaded: " + *evaded);
  }
}

void NoteLease(const policy::StoredPolicy& policy, std::vector<std::string>& warnings) {
  if (policy.type.is_override() || policy.unlimited) return;
  const std::string loss = policy::LongLeaseOf(policy.mode, policy.type.algorithm(),
                                               std::chrono::seconds(policy.window_seconds));
  if (!loss.empty()) warnings.push_back("mode: leased: " + loss);
}

}  // namespace

Status CheckSpan(const policy::StoredPolicy& policy, const GivenFields& given) {
  if (policy.type.is_override() || policy.unlimited) return {};
  const algorithm::Descriptor& kind = algorithm::Of(policy.type.algorithm());
  const auto window = given.find("windowSeconds");
  if (!kind.refills() || given.contains("refillRate") || window == given.end()) return {};
  return Invalid(
      "refillRate: is missing; a " + std::string(kind.type) + " has no " + window->second +
      ". Give the permits that come back each second, or use "
      "SLIDING_WINDOW for " +
      std::to_string(policy.capacity) + " in any " + std::to_string(policy.window_seconds) + " s");
}

std::vector<std::string> PolicyWarnings(const policy::StoredPolicy& policy,
                                        const GivenFields& given) {
  std::vector<std::string> warnings = UnusedNumbers(policy, given);
  NoteMissing(policy, given, warnings);
  NoteUnmet(policy, given, warnings);
  NoteLease(policy, warnings);
  const bool counts = !policy.unlimited && !policy.type.is_override() && !policy.overdraw;
  if (counts && policy.cost > policy.capacity) {
    warnings.push_back("every request is refused: each costs " + std::to_string(policy.cost) +
                       ", more than the limit of " + std::to_string(policy.capacity));
  }
  return warnings;
}

}  // namespace weir::http
