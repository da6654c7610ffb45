#pragma once

// A check may be granted permits by several concurrency policies. The client gets all of them as
// one string, which a release sends back: for each permit 8 hexadecimal digits that distinguish its
// bucket from the others of the check, and 16 of the lease. The string alone opens no bucket: a
// release identifies the caller as the check did, and frees only that caller's.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weir/result.h"

namespace weir::limiter {

struct Check;

/// What one concurrency policy has granted to a check.
struct Permit {
  std::uint32_t bucket = 0;  ///< BucketTag of the store's key
  std::int64_t lease = 0;

  friend bool operator==(const Permit&, const Permit&) = default;
};

/// The limits of a text of permits; as many permits as policies may apply to a check.
inline constexpr std::size_t kPermitDigits = 24;
inline constexpr std::size_t kMaxPermits = 256;

/// The same on every node, so that any of them can release.
std::uint32_t BucketTag(std::string_view key) noexcept;

/// Appends the text of all permits that the check was granted; nothing if there are none. Requires
/// that the check's verdicts still exist.
void AppendPermits(std::string& out, const Check& check);

/// Reads such a text into `permits`. Memory is bounded by kMaxPermits for any text.
Status ParsePermits(std::string_view text, std::vector<Permit>& permits);

}  // namespace weir::limiter
