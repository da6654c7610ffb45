#pragma once

// One call of a SharedLimiter in progress: its arguments, copied from the caller, and the answer.

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/reserve/reservation.h"
#include "store/store.h"

namespace weir::library {

/// Not thread-safe: the caller's thread fills it, then it belongs to the limiter's.
struct Job {
  /// Adds a charge under the key's name in the store. Requires that Seal has not been called.
  void Add(std::string_view prefix, std::string_view key, const Quota& quota, std::int64_t cost);
  /// Makes it a call that reserves `cost` of a key, or that settles a reservation at its real cost.
  Status Reserve(std::string_view prefix, std::string_view key, const Quota& quota,
                 std::int64_t cost, std::chrono::milliseconds lasts);
  Status Settle(std::string_view text, std::int64_t cost);
  /// Fixes the text of the keys, so that views of it are valid.
  void Seal();

  std::string keys;
  std::vector<std::size_t> ends;  ///< of the keys in `keys`
  std::vector<Quota> quotas;
  std::vector<store::Charge> charges;
  std::vector<Nanos> stamps = {};  ///< of the charges that are settled
  std::optional<store::reserve::Reservation> reservation = {};
  std::vector<Decision> decisions;
  store::Application application;
  std::function<void(Job&)> done;

 private:
  void AddNamed(std::string_view name, const Quota& quota, std::int64_t cost, Nanos stamp = 0);
  void AddRecord();
};

/// The name of a caller's key in the store: prefix + key, or "{t}" + prefix + the rest if the key
/// begins with "{t}", since a cluster looks for the tag at the beginning.
void AppendStoreKey(std::string& out, std::string_view prefix, std::string_view key);

}  // namespace weir::library
