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

/// Who makes the request, and what it costs. A view: the protocol that made it owns the bytes.
struct Request {
  /// Empty: "default", or the only domain that has policies (ImpliedDomain in policy/domains.h).
  std::string_view domain;
  std::span<const Descriptor> descriptors;
  std::int64_t cost = 1;
  /// The cost of each descriptor, in order (0 only reads); empty: `cost` for every one.
  std::span<const std::int64_t> costs;
  /// Flags for descriptors, in order: 1 if the cost was stated for this one alone, as when
  /// completed work is reported: see ChargeMode::kReports. Empty: none.
  std::span<const std::uint8_t> reported = {};
  /// Quotas that replace the policies of a descriptor, in order (null: none); empty: none. The key
  /// is the whole descriptor. Ignored in a domain that has no policies.
  std::span<const Quota* const> overrides;
  /// Descriptors that lead to the same bucket charge it one after the other; otherwise it is
  /// charged once, with the largest of their costs.
  bool each_time = false;
  /// A bare key (`{"key":"user-123"}`, WEIR.CHECK): the policy whose key is exactly this applies,
  /// or else the default policy, and each key has its own bucket. If not empty, the domain and the
  /// descriptors are ignored.
  std::string_view key = {};
  /// Bare keys that the request stands for in addition to its descriptors: the client's address,
  /// user and API key, under the names of these entries. A policy whose key is exactly one of them
  /// applies as well, in place of the policies for any value of that entry alone.
  std::span<const Entry> subjects = {};
  /// If no policy applies, the default policy does, for the first of `subjects`.
  bool default_applies = false;
};

}  // namespace weir::policy
