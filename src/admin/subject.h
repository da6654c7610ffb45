#pragma once

// The subject of a request to the admin API, as its query describes it: a bare key, a
// bucket by its name, or a request by its entries.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policy/keys.h"
#include "policy/policy_set.h"
#include "weir/result.h"

namespace weir::admin {

/// ?key=user-123, ?bucket=api/per-user|user:42, or ?domain=api&user=42&route=/v1/pay, where every
/// name that is not a known parameter is an entry of one descriptor; &cost=2 with each of them. One
/// of `key`, `bucket` and `entries` is set.
struct Subject {
  std::string key = {};
  std::string bucket = {};
  std::string domain = {};
  std::vector<std::pair<std::string, std::string>> entries = {};
  std::int64_t cost = 1;

  /// Views of the entries.
  std::vector<policy::Entry> Descriptor() const;
  /// In words: "user-123", "api/per-user|user:42", "api user=42 route=/v1/pay".
  std::string ToString() const;
};

Result<Subject> ReadSubject(std::string_view query);

/// The domains that the entries of a subject may be meant for. With a domain: that one. Without:
/// the default one if a policy of it applies, as it would to a check without a domain; else all
/// that have a policy which applies; the default one if none has.
std::vector<std::string> DomainsOf(const policy::PolicySet& set, const Subject& subject);

/// The error to return if there are several.
Error ManyDomains(const std::vector<std::string>& domains);

/// The request that the entries of a subject describe, with the memory behind its views.
///
/// An address (`ip`) in the domain of requests that name none makes it the request of GET /v1/auth:
/// policies whose key is the address, the API key or the user apply as well, and if none does,
/// the default policy for the address, if `default_applies` to such requests.
struct EntryRequest {
  EntryRequest(const policy::PolicySet& set, const Subject& subject, std::string_view domain,
               bool default_applies);
  EntryRequest(const EntryRequest&) = delete;
  EntryRequest& operator=(const EntryRequest&) = delete;

  std::vector<policy::Entry> entries;
  std::vector<policy::Entry> subjects;
  policy::Descriptor descriptor;
  policy::Request request;
  /// GET /v1/auth decides differently from a check of the same entries.
  bool only_auth = false;
};

/// What is probably misspelled in a request that no policy applies to: "no policy uses domain
/// 'apy'; did you mean 'api'?", or the same for an entry. Empty if nothing is. `domain` is empty
/// if the request names none.
std::string UnusedIn(const policy::PolicySet& set, std::string_view domain,
                     policy::Descriptor descriptor);

/// The prefix of the names of bare keys' buckets (policy/keys.h).
inline constexpr std::string_view kBareBucket = "key|";

/// The policy of a bucket, by the start of its name: `domain/name`. Null if it is of no policy
/// in force.
const policy::Policy* PolicyOfBucket(const policy::PolicySet& set, std::string_view bucket);

/// The requests that a bucket of `policy` is for, by its name: a domain and entries. nullopt for a
/// bare key, or if the name was truncated.
std::optional<Subject> SubjectOfBucket(const policy::Policy& policy, std::string_view bucket);

/// The more specific policy that applies instead of `policy` to all requests of `subject`, which is
/// describes one of its buckets, so that the bucket is not charged; null if there is none.
const policy::Policy* ReplacementOf(const policy::PolicySet& set, const policy::Policy& policy,
                                    const Subject& subject);

/// The names of the other policies that limit requests of `subject`, each in quotes: "'burst' and
/// 'pay'". Empty if there are none.
std::string OthersLimiting(const policy::PolicySet& set, const policy::Policy& policy,
                           const Subject& subject);

}  // namespace weir::admin
