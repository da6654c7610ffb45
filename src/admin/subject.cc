#include "admin/subject.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/nearest.h"
#include "base/number.h"
#include "protocol/http/check_reader.h"
#include "protocol/http/query.h"
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

/// A request may have an entry twice, with different values.
bool IsEntry(std::string_view name) {
  return name != "key" && name != "bucket" && name != "domain" && name != "cost";
}

std::optional<Error> ReadCost(std::string_view text, std::int64_t& cost) {
  if (const auto number = ParseNumber<std::int64_t>(text, 0, kMaxLimit)) {
    cost = *number;
    return std::nullopt;
  }
  return Error{Code::kInvalidArgument, "cost: must be an integer from 0 to 1099511627776"};
}

/// A bucket of a prefix is for all values with that prefix, and remains in use if only some of them
/// have a policy of their own.
bool KeepsPrefixes(const policy::Definition& rival, const policy::Definition& policy) {
  return std::all_of(
      policy.match.begin(), policy.match.end(), [&rival](const policy::EntryMatch& entry) {
        return entry.kind != policy::MatchKind::kPrefix ||
               std::find(rival.match.begin(), rival.match.end(), entry) != rival.match.end();
      });
}

/// "no policy uses domain 'apy'; did you mean 'api'?"
std::string Unused(std::string what, std::string_view name,
                   const std::vector<std::string_view>& used) {
  what.append(" '").append(name).append("'");
  if (const auto nearest = Nearest(name, used)) {
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
  std::set<std::string> given_names;
  http::QueryReader reader(query);
  while (const auto pair = reader.Next()) {
    auto name = http::DecodeQuery(pair->key);
    auto value = http::DecodeAnyQuery(pair->value);
    const std::size_t longest =
        name == "bucket" ? policy::kMaxKeyBytes : std::size_t{http::kMaxValueBytes};
    if (!name || !value || value->size() > longest) {
      return Error{Code::kInvalidArgument, "query: bad percent-encoding, or a value is too long"};
    }
    if (!IsEntry(*name) && !given_names.insert(*name).second) return http::GivenTwice(*name);
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
  for (const auto& [domain, names] : set.directory().domains()) {
    if (Applies(set, domain, descriptor)) found.emplace_back(domain);
  }
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
                           std::string_view domain, bool default_applies)
    : entries(subject.Descriptor()), descriptor(entries) {
  request.domain = domain;
  request.descriptors = std::span(&descriptor, 1);
  request.cost = subject.cost;
  // In the order in which service/auth_question.cc names them.
  for (const std::string_view name : {"ip", "api_key", "user"}) {
    const auto named = [name](const policy::Entry& entry) { return entry.key == name; };
    const auto found = std::find_if(entries.begin(), entries.end(), named);
    if (found != entries.end()) subjects.push_back(*found);
  }
  if (domain != set.implied_domain() || subjects.empty() || subjects.front().key != "ip") return;
  request.subjects = subjects;
  request.default_applies = default_applies;
  only_auth = (default_applies && !IsEnforced(set, domain, descriptor)) ||
              std::any_of(subjects.begin(), subjects.end(), [&set](const policy::Entry& entry) {
                return &set.ForKey(entry.value) != &set.default_policy();
              });
}

std::string UnusedIn(const policy::PolicySet& set, std::string_view domain,
                     policy::Descriptor descriptor) {
  const auto& domains = set.directory().domains();
  if (domain.empty()) domain = set.implied_domain();
  const auto found = domains.find(domain);
  if (found == domains.end()) {
    std::vector<std::string_view> names;
    names.reserve(domains.size());
    for (const auto& one : domains) names.push_back(one.first);
    return Unused("no policy uses domain", domain, names);
  }
  const std::string of = "no policy of domain '" + std::string(found->first) + "' uses the entry";
  for (const policy::Entry& entry : descriptor) {
    const auto& used = found->second;
    if (!used.contains(entry.key)) return Unused(of, entry.key, {used.begin(), used.end()});
  }
  return {};
}

const policy::Policy* PolicyOfBucket(const policy::PolicySet& set, std::string_view bucket) {
  if (bucket.starts_with(kBareBucket)) {
    const auto key = http::DecodeAnySegment(bucket.substr(kBareBucket.size()));
    if (!key) return nullptr;
    const policy::Policy& policy = set.ForKey(*key);
    // A shadow policy has a bucket of its own (policy::AppendBucket).
    return policy.definition.shadow ? &set.default_policy() : &policy;
  }
  return set.directory().ByBucket(bucket.substr(0, bucket.find('|')));
}

std::optional<Subject> SubjectOfBucket(const policy::Policy& policy, std::string_view bucket) {
  if (!policy.definition.has_match) return std::nullopt;
  Subject subject{.domain = policy.definition.domain};
  for (std::size_t at = bucket.find('|'); at != bucket.npos;) {
    bucket.remove_prefix(at + 1);
    at = bucket.find('|');
    const std::string_view entry = bucket.substr(0, at);
    const std::size_t colon = entry.find(':');
    if (colon == entry.npos) return std::nullopt;
    auto name = http::DecodeAnySegment(entry.substr(0, colon));
    auto value = http::DecodeAnySegment(entry.substr(colon + 1));
    if (!name || !value) return std::nullopt;
    subject.entries.emplace_back(std::move(*name), std::move(*value));
  }
  return subject;
}

const policy::Policy* ReplacementOf(const policy::PolicySet& set, const policy::Policy& policy,
                                    const Subject& subject) {
  policy::MatchBuffer buffer;
  set.Match(subject.domain, subject.Descriptor(), buffer, /*keep_replaced=*/true);
  for (const policy::Applying& applying : buffer.applying) {
    if (applying.policy != &policy || applying.replaced_by == nullptr) continue;
    const bool whole = KeepsPrefixes(applying.replaced_by->definition, policy.definition);
    return whole ? applying.replaced_by : nullptr;
  }
  return nullptr;
}

std::string OthersLimiting(const policy::PolicySet& set, const policy::Policy& policy,
                           const Subject& subject) {
  policy::MatchBuffer buffer;
  set.Match(subject.domain, subject.Descriptor(), buffer);
  std::vector<std::string> names;
  for (const policy::Applying& applying : buffer.applying) {
    const policy::Definition& other = applying.policy->definition;
    if (applying.policy == &policy || other.shadow || !other.quota) continue;
    names.push_back("'" + other.name + "'");
  }
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " and " : ", ";
    text += names[i];
  }
  return text;
}

}  // namespace weir::admin
