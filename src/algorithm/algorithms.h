#pragma once

// The one table of the algorithms. All code that needs their list, names, numbers or state formats
// uses it, so that a new algorithm is its own file pair, a factory in Quota and one row in
// algorithms.cc.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "algorithm/state.h"
#include "weir/quota.h"
#include "weir/result.h"

namespace weir::algorithm {

/// The numbers of any quota. An algorithm uses those that its Descriptor names.
struct Numbers {
  std::int64_t limit = 1;
  std::int64_t refill = 1;
  std::chrono::nanoseconds period = std::chrono::seconds(1);
  std::chrono::nanoseconds window = std::chrono::seconds(1);
  std::int64_t buckets = 10;
};

/// Everything about one algorithm. Immutable.
struct Descriptor {
  /// Its number is the tag of its states in snapshots, journals, SQL rows and Redis' script: never
  /// reused for another one.
  Algorithm algorithm;

  std::string_view name;   ///< In policy files and in Quota::ToString: "sliding_log".
  std::string_view type;   ///< In the admin API and its stored policies: "SLIDING_WINDOW".
  std::string_view title;  ///< For people, on the dashboard: "Sliding window (exact)".
  char letter;             ///< Ends the names of its keys in Redis.

  std::string_view limit_name;  ///< The name of the limit in policy files.
  std::string_view span_name;   ///< The name of the window there; empty: it has a refill instead.
  bool has_buckets = false;     ///< Divides its window into buckets.
  bool leases =
      false;  ///< Permits are held until they are released, so a refusal may end at any time.
  bool logged = false;   ///< Keeps an entry per grant: in Redis a list beside a header.
  bool aligned = false;  ///< Windows (buckets) begin at multiples of their width since 1970.

  Result<Quota> (*make)(const Numbers& numbers);

  std::uint32_t (*capacity)(const Quota& quota, const State& state) noexcept;
  Decision (*peek)(const Quota& quota, const State& state, Nanos now, std::int64_t cost) noexcept;
  Decision (*acquire)(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept;
  Decision (*overdraw)(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept;
  Decision (*refund)(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept;
  bool (*release)(State& state, Nanos now, std::int64_t lease) noexcept;  ///< Null without leases.
  Nanos (*fresh_at)(const State& state) noexcept;               ///< Of a state that is not empty.
  bool (*valid)(std::span<const std::uint8_t> bytes) noexcept;  ///< Of bytes that are not empty.

  bool refills() const noexcept { return span_name.empty(); }
};

inline constexpr std::size_t kCount = 6;

/// In the order of their numbers. Initialized before any code runs.
extern const std::array<Descriptor, kCount> kAlgorithms;

inline const Descriptor& Of(Algorithm algorithm) noexcept {
  return kAlgorithms[static_cast<std::size_t>(algorithm)];
}
inline const Descriptor& Of(const Quota& quota) noexcept { return Of(quota.algorithm()); }

/// The algorithm with this name in policy files or in the admin API; null if there is none.
const Descriptor* FindNamed(std::string_view name) noexcept;
/// The one with this number, or with this letter at the end of its keys in Redis; null if none.
const Descriptor* FindTag(std::uint64_t tag) noexcept;
const Descriptor* FindLetter(char letter) noexcept;

/// "a, b or c": all names, or all types.
std::string Listed(std::string_view Descriptor::*names);

/// The numbers with which `make` returns this quota.
Numbers NumbersOf(const Quota& quota) noexcept;

/// A value for each algorithm. Not thread-safe, like any value.
template <typename T>
class PerAlgorithm {
 public:
  T& operator[](Algorithm algorithm) noexcept {
    return values_[static_cast<std::size_t>(algorithm)];
  }
  const T& operator[](Algorithm algorithm) const noexcept {
    return values_[static_cast<std::size_t>(algorithm)];
  }
  auto begin() noexcept { return values_.begin(); }
  auto end() noexcept { return values_.end(); }

 private:
  std::array<T, kCount> values_;
};

}  // namespace weir::algorithm
