#include "admin/subject.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/number.h"
#include "policy/fields.h"
#include "protocol/http/check_reader.h"
#include "protocol/http/uri.h"

namespace weir::admin {
namespace {

bool Applies(const policy::PolicySet& set, std::string_view domain, policy::Descriptor descriptor) {
  policy::MatchBuffer buffer;
  set.Match(domain, descriptor, buffer);
  return !buffer.applying.empty();
}

bool IsEnforced(const policy::PolicySet& set, std::string_view domain,
                policy::Descriptor descriptor) {
  policy::MatchBuffer buffer;
  set.Match(domain, descriptor, buffer);
  return std::any_of(
      buffer.applying.begin(), buffer.applying.end(),
      [](const policy::Applying& applying) { return !applying.policy->definition.shadow; });
}

std::optional<Error> ReadCost(std::string_view text, std::int64_t& cost) {
  if (const auto number = ParseNumber<std::int64_t>(text, 0, kMaxLimit)) {
    cost = *number;
    return std::nullopt;
  }
  return Error{Code::kInvalidArgument, "cost: must be an integer from 0 to 1099511627776"};
}

using Names = std::set<std::string_view>;

/// "no policy uses domain 'apy'; did you mean 'api'?"
std::string Unused(std::string what, std::string_view name, const Names& used) {
  what.append(" '").append(name).append("'");
  const std::vector<std::string_view> candidates(used.begin(), used.end());
  if (const auto nearest = policy::yaml::Nearest(name, candidates)) {
    what.append("; did you mean '").append(*nearest).append("'?");
  }
  return what;
}

}  // namespace

std::vector<policy::Entry> Subject::Descriptor() const {
  std::vector<policy::Entry> views;
  views.reserve(entries.size());
  for (const auto& [name, value] : entries) views.push_back({name, value});
  return views;
}

std::string Subject::ToString() const {
  if (!key.empty()) return key;
  if (!bucket.empty()) return bucket;
  std::string text = domain;
  for (const auto& [name, value] : entries) {
    if (!text.empty()) text += ' ';
    text.append(name).append("=").append(value);
  }
  return text;
}

Result<Subject> ReadSubject(std::string_view query) {
  Subject subject;
  http::QueryReader reader(query);
  while (const auto pair = reader.Next()) {
    auto name = http::DecodeQuery(pair->key);
    auto value = http::DecodeAnyQuery(pair->value);
    const std::size_t longest =
        name == "bucket" ? policy::kMaxKeyBytes : std::size_t{http::kMaxValueBytes};
    if (!name || !value || value->size() > longest) {
      return Error{Code::kInvalidArgument, "query: bad percent-encoding, or a value is too long"};
    }
    if (*name == "key") {
      subject.key = std::move(*value);
    } else if (*name == "bucket") {
      subject.bucket = std::move(*value);
    } else if (*name == "domain") {
      subject.domain = std::move(*value);
    } else if (*name == "cost") {
      if (auto bad = ReadCost(*value, subject.cost)) return *bad;
    } else if (subject.entries.size() == http::kMaxEntries) {
      return Error{Code::kInvalidArgument, "query: too many entries"};
    } else {
      subject.entries.emplace_back(std::move(*name), std::move(*value));
    }
  }
  const int given = static_cast<int>(!subject.key.empty()) +
                    static_cast<int>(!subject.bucket.empty()) +
                    static_cast<int>(!subject.entries.empty());
  if (given != 1) {
    return Error{Code::kInvalidArgument,
                 "query: give one of key=…, bucket=… or entries such as user=42"};
  }
  return subject;
}

std::vector<std::string> DomainsOf(const policy::PolicySet& set, const Subject& subject) {
  const std::vector<policy::Entry> descriptor = subject.Descriptor();
  if (!subject.domain.empty()) return {subject.domain};
  if (Applies(set, set.implied_domain(), descriptor)) return {set.implied_domain()};
  std::vector<std::string> found;
  for (const policy::Policy& policy : set.policies()) {
    if (policy.definition.has_match) found.push_back(policy.definition.domain);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  std::erase_if(found, [&](const std::string& one) { return !Applies(set, one, descriptor); });
  if (found.empty()) found.push_back(set.implied_domain());
  return found;
}

Error ManyDomains(const std::vector<std::string>& domains) {
  constexpr std::size_t kMost = 20;
  std::string message = "domain: several domains have policies for this request; choose one of";
  for (std::size_t i = 0; i < std::min(domains.size(), kMost); ++i) {
    message.append(i == 0 ? " " : ", ").append(domains[i]);
  }
  if (domains.size() > kMost) message += ", …";
  return {Code::kInvalidArgument, std::move(message)};
}

EntryRequest::EntryRequest(const policy::PolicySet& set, const Subject& subject,
                           std::string_view domain)
    : entries(subject.Descriptor()), descriptor(entries) {
  request.domain = domain;
  request.descriptors = std::span(&descriptor, 1);
  request.cost = subject.cost;
  // As service/auth_question.cc names them, in its order.
  for (const std::string_view name : {"ip", "api_key", "user"}) {
    const auto named = [name](const policy::Entry& entry) { return entry.key == name; };
    const auto found = std::find_if(entries.begin(), entries.end(), named);
    if (found != entries.end()) subjects.push_back(*found);
  }
  if (domain != set.implied_domain() || subjects.empty() || subjects.front().key != "ip") return;
  request.subjects = subjects;
  request.default_applies = true;
  only_auth = !IsEnforced(set, domain, descriptor) ||
              std::any_of(subjects.begin(), subjects.end(), [&set](const policy::Entry& entry) {
                return &set.ForKey(entry.value) != &set.default_policy();
              });
}

std::string UnusedIn(const policy::PolicySet& set, std::string_view domain,
                     policy::Descriptor descriptor) {
  std::map<std::string_view, Names> entries;  // by domain
  Names domains;
  for (const policy::Policy& policy : set.policies()) {
    const policy::Definition& definition = policy.definition;
    if (!definition.has_match) continue;
    domains.insert(definition.domain);
    Names& used = entries[definition.domain];
    for (const policy::EntryMatch& match : definition.match) used.insert(match.name);
  }
  if (domain.empty()) domain = set.implied_domain();
  const auto found = entries.find(domain);
  if (found == entries.end()) return Unused("no policy uses domain", domain, domains);
  const std::string of = "no policy of domain '" + std::string(found->first) + "' uses the entry";
  for (const policy::Entry& entry : descriptor) {
    if (!found->second.contains(entry.key)) return Unused(of, entry.key, found->second);
  }
  return {};
}

PoliciesByBucket::PoliciesByBucket(const policy::PolicySet& set) : set_(set) {
  for (const policy::Policy& policy : set.policies()) {
    const std::string_view start = policy.key_parts.front();
    by_start_.emplace(start.substr(0, start.find('|')), &policy);
  }
}

const policy::Policy* PoliciesByBucket::Find(std::string_view bucket) const {
  if (bucket.starts_with(kBareBucket)) {
    const auto key = http::DecodeAnySegment(bucket.substr(kBareBucket.size()));
    if (!key) return nullptr;
    const policy::Policy& policy = set_.ForKey(*key);
    // One on trial has a bucket of its own (policy::AppendBucket).
    return policy.definition.shadow ? &set_.default_policy() : &policy;
  }
  const auto found = by_start_.find(bucket.substr(0, bucket.find('|')));
  return found == by_start_.end() ? nullptr : found->second;
}

}  // namespace weir::admin
