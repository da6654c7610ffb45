#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace weir {
class Quota;
}

namespace weir::policy {

/// One fact about the caller: `user` = `42`, `route` = `/v1/pay`.
struct Entry {
  std::string_view key;
  std::string_view value;
};

/// Entries that are matched together.
using Descriptor = std::span<const Entry>;

/// Who is asking, and for how much. A view: the protocol that made it owns the bytes.
struct Request {
  /// Empty: "default", or the only domain that has policies (ImpliedDomain in policy/domains.h).
  std::string_view domain;
  std::span<const Descriptor> descriptors;
  std::int64_t cost = 1;
  /// What each descriptor costs, in their order (0 only looks); empty: `cost` for every one.
  std::span<const std::int64_t> costs;
  /// Descriptors, in their order, whose cost was stated for them alone (1), as work that is done is
  /// reported: see ChargeMode::kReports. Empty: none.
  std::span<const std::uint8_t> reported = {};
  /// A quota that stands in for the policies of a descriptor, in their order (null: none); empty:
  /// none. Its key is the whole descriptor. Ignored in a domain that has no policies.
  std::span<const Quota* const> overrides;
  /// Descriptors that lead to the same bucket charge it one after the other; else it is charged
  /// once, with the largest of their costs.
  bool each_time = false;
  /// A bare key (`{"key":"user-123"}`, WEIR.CHECK): the policy whose key is exactly this applies,
  /// else the default policy, and each key has a bucket of its own. If not empty, the domain and
  /// the descriptors are not looked at.
  std::string_view key = {};
  /// Bare keys that the request stands for beside its descriptors: the client's address, its user,
  /// its API key, under the names of these entries. A policy whose key is exactly one of them
  /// applies as well, in place of the policies for any value of that entry alone.
  std::span<const Entry> subjects = {};
  /// Where no policy applies, the default policy does, for the first of `subjects`.
  bool default_applies = false;
};

}  // namespace weir::policy
