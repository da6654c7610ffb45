#include "policy/unreachable.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/ascii.h"
#include "base/ip.h"

namespace weir::policy {
namespace {

using Why = std::optional<std::string>;

std::string Quoted(const EntryMatch& entry) { return entry.name + " '" + entry.text + "'"; }

/// The protocols spell a client's address in one way only, and IPv6 clients by their network.
Why AddressTrouble(const EntryMatch& entry) {
  if (entry.kind != MatchKind::kExact) return std::nullopt;
  if (const auto address = IpAddress::Parse(entry.text)) {
    const std::string known = ClientKey(*address);
    if (known == entry.text) return std::nullopt;
    return Quoted(entry) + ": clients with this address are known as '" + known + "'";
  }
  if (!IpNetwork::Parse(entry.text).ok()) return Quoted(entry) + " is not an address";
  if (entry.text.ends_with("/64")) return std::nullopt;
  return Quoted(entry) +
         " is a network: it matches only a client identified by exactly this string";
}

Why MethodTrouble(const EntryMatch& entry) {
  const bool lower = std::any_of(entry.text.begin(), entry.text.end(),
                                 [](char c) { return c >= 'a' && c <= 'z'; });
  if (lower) return Quoted(entry) + ": methods are upper case";
  if (entry.text.find_first_of("|, ") == entry.text.npos) return std::nullopt;
  return Quoted(entry) + " is not a single method: write a policy for each";
}

Why RouteTrouble(const EntryMatch& entry) {
  if (entry.text.find('?') != entry.text.npos) {
    return Quoted(entry) + ": routes are paths, without the query";
  }
  const bool path = entry.text.find('/') != entry.text.npos;
  if (path && !entry.text.starts_with('/')) return Quoted(entry) + ": paths begin with '/'";
  return std::nullopt;
}

Why EntryTrouble(const EntryMatch& entry) {
  if (entry.kind == MatchKind::kAny) return std::nullopt;
  if (entry.name == "ip") return AddressTrouble(entry);
  if (entry.name == "method") return MethodTrouble(entry);
  if (entry.name == "route") return RouteTrouble(entry);
  const bool spaced = entry.text.starts_with(' ') || entry.text.ends_with(' ');
  if (spaced) return Quoted(entry) + " begins or ends with a space";
  return std::nullopt;
}

/// Whether `outer` matches every value that `inner` matches.
bool Covers(const EntryMatch& outer, const EntryMatch& inner) {
  if (outer.kind == MatchKind::kAny) return true;
  if (outer.kind == MatchKind::kExact) return inner == outer;
  return inner.kind != MatchKind::kAny && inner.text.starts_with(outer.text);
}

/// Whether every request that matches `inner` matches `outer`.
bool Covers(const Definition& outer, const Definition& inner) {
  return std::all_of(outer.match.begin(), outer.match.end(), [&](const EntryMatch& entry) {
    return std::any_of(inner.match.begin(), inner.match.end(), [&](const EntryMatch& other) {
      return other.name == entry.name && Covers(entry, other);
    });
  });
}

bool TakesEffect(const Definition& one) { return one.has_match && !one.ordered && !one.shadow; }

/// By domain and name: a policy that says that it replaces this one.
using PolicyName = std::pair<std::string_view, std::string_view>;
using Rivals = std::map<PolicyName, const Definition*>;

Why Trouble(const Definition& one, const Rivals& rivals) {
  // The values of a chain are chosen by the caller, whatever they are called.
  if (!one.ordered) {
    if (Why why = WhyUnreachable(one.match)) return why;
  }
  const auto rival = rivals.find({one.domain, one.name});
  if (rival != rivals.end() && one.has_match && !one.ordered && Covers(*rival->second, one)) {
    return "policy '" + rival->second->name + "' applies to all the same requests and replaces it";
  }
  return std::nullopt;
}

bool Names(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// As in Envoy's service, policies that replace each other are both dropped.
void AddMutual(const PolicySet& set, std::vector<std::string>& sentences) {
  std::map<PolicyName, const Definition*> enforced;
  for (const Policy& policy : set.policies()) {
    const Definition& one = policy.definition;
    if (!one.shadow && !one.replaces.empty())
      enforced.emplace(PolicyName(one.domain, one.name), &one);
  }
  for (const auto& [name, one] : enforced) {
    for (const std::string& replaced : one->replaces) {
      const auto other = enforced.find({one->domain, replaced});
      if (other == enforced.end() || one->name >= replaced) continue;
      if (!Names(other->second->replaces, one->name)) continue;
      sentences.push_back(one->source + ": policies '" + one->name + "' and '" + replaced +
                          "' replace each other: neither limits a request to which both apply");
    }
  }
}

/// A misspelt name replaces nothing, and both policies limit the request.
void AddUnknown(const PolicySet& set, std::vector<std::string>& sentences) {
  std::set<PolicyName> known;
  for (const Policy& policy : set.policies()) {
    known.emplace(policy.definition.domain, policy.definition.name);
  }
  for (const Policy& policy : set.policies()) {
    const Definition& one = policy.definition;
    for (const std::string& name : one.replaces) {
      if (known.contains({one.domain, name})) continue;
      sentences.push_back(one.source + ": policy '" + one.name + "' replaces '" + name +
                          "', but no policy of domain '" + one.domain + "' has this name");
    }
  }
}

/// The spelling of a path that is among the names of each other one (docs/guide/proxy.md). Escapes
/// are upper case in all of them.
std::string CoveringRoute(const EntryMatch& entry) {
  std::string out;
  for (std::size_t i = 0; i < entry.text.size(); ++i) {
    const char c = entry.text[i];
    if (c == '/' && out.ends_with('/')) continue;
    const bool escape = c == '%' && i + 2 < entry.text.size();
    out.append(escape ? entry.text.substr(i, 3) : std::string(1, Lower(c)));
    if (escape) i += 2;
  }
  // "/v1/pay/*" is everything below it.
  if (entry.kind == MatchKind::kExact && out.size() > 1 && out.ends_with('/')) out.pop_back();
  return out;
}

/// Whether evading it gains anything; the values of a chain are chosen by the caller.
bool Limits(const Definition& one) { return !one.ordered && (one.quota || one.blocked); }

bool NeverFits(const Definition& one) {
  return one.quota && !one.always_counts() && !one.blocked && one.cost > one.quota->limit();
}

}  // namespace

std::optional<std::string> WhyUnreachable(std::span<const EntryMatch> match) {
  Why all;
  for (const EntryMatch& entry : match) {
    if (Why why = EntryTrouble(entry)) all = all ? *all + "; " + *why : *why;
  }
  return all;
}

std::optional<std::string> WhyEvaded(std::span<const EntryMatch> match) {
  for (const EntryMatch& entry : match) {
    const bool path = entry.name == "route" && entry.text.starts_with('/');
    if (!path || entry.kind == MatchKind::kAny) continue;
    const std::string covering = CoveringRoute(entry);
    if (covering == entry.text) continue;
    const std::string star = entry.kind == MatchKind::kExact ? "" : "*";
    return entry.name + " '" + entry.text + star +
           "' is one spelling of the path; for `weir proxy` and GET /v1/auth write '" + covering +
           star + "', which covers all of them";
  }
  return std::nullopt;
}

std::vector<std::string> Unreachable(const PolicySet& set) {
  Rivals rivals;
  for (const Policy& policy : set.policies()) {
    const Definition& one = policy.definition;
    if (!TakesEffect(one)) continue;
    for (const std::string& name : one.replaces) {
      rivals.emplace(PolicyName(one.domain, name), &one);
    }
  }
  std::vector<std::string> sentences;
  for (const Policy& policy : set.policies()) {
    const Definition& one = policy.definition;
    const std::string head = one.source + ": policy '" + one.name + "' ";
    if (const Why why = Trouble(one, rivals)) {
      sentences.push_back(head + "applies to no request: " + *why);
    } else if (NeverFits(one)) {
      sentences.push_back(head + "refuses every request: each costs " + std::to_string(one.cost) +
                          ", more than its limit of " + std::to_string(one.quota->limit()));
    } else if (const Why evaded = Limits(one) ? WhyEvaded(one.match) : Why()) {
      sentences.push_back(head + "can be evaded: " + *evaded);
    }
  }
  if (set.any_replaces()) {
    AddMutual(set, sentences);
    AddUnknown(set, sentences);
  }
  return sentences;
}

}  // namespace weir::policy
