#include <algorithm>

#include "limiter/limiter.h"
#include "policy/definition.h"
#include "policy/policy_set.h"

namespace weir::limiter {
namespace {

constexpr std::size_t kMaxKeyText = 256;

std::string_view ShownValue(const policy::Entry& entry) noexcept {
  return entry.key == "api_key" ? std::string_view("(api key)") : entry.value;
}

/// The entries that the policy names, if any.
std::string MatchedEntries(const policy::Definition& definition, policy::Descriptor descriptor) {
  const auto named = [&](const policy::Entry& entry) {
    return std::any_of(definition.match.begin(), definition.match.end(),
                       [&](const auto& match) { return match.name == entry.key; });
  };
  const auto count = std::count_if(descriptor.begin(), descriptor.end(), named);
  std::string text;
  for (const policy::Entry& entry : descriptor) {
    if (!named(entry)) continue;
    if (!text.empty()) text += '|';
    if (count > 1) text.append(entry.key).append(":");
    text += ShownValue(entry);
  }
  return text;
}

}  // namespace

std::string RefusedKey(const Check& check) {
  std::string text(check.request.key);
  for (const PolicyVerdict& verdict : check.verdicts) {
    if (!text.empty()) break;
    if (verdict.shadow || verdict.decision.allowed() || verdict.policy != check.policy) continue;
    if (verdict.rule != nullptr && verdict.descriptor < check.request.descriptors.size()) {
      text =
          MatchedEntries(verdict.rule->definition, check.request.descriptors[verdict.descriptor]);
    }
    // A policy for one key, or the default: the subject is the end of the bucket's name.
    for (const policy::Entry& subject : check.request.subjects) {
      if (text.empty() && verdict.key.ends_with(subject.value)) text = ShownValue(subject);
    }
  }
  return text.substr(0, kMaxKeyText);
}

}  // namespace weir::limiter
