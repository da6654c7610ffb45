#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/clock.h"
#include "weir/quota.h"

namespace weir::simulation {

/// Something that was admitted, in the store's time, or returned.
struct Admission {
  Nanos time = 0;
  std::int64_t cost = 0;  ///< less than 0: returned
};

/// Replays admissions through a quota's step: describes the first that it would have refused.
std::optional<std::string> FirstRefused(const Quota& quota,
                                        const std::vector<Admission>& admissions);

/// What a store charged, in its own time, less what was returned to it: returned permits count as
/// never charged, and the quota must grant the rest. Not thread-safe.
class Ledger {
 public:
  void Charged(std::string_view key, const Quota& quota, Admission charge);
  /// `count` of the permits of `key` that were charged at `at`.
  void Returned(std::string_view key, Nanos at, std::int64_t count);

  /// Describes the first charge that its quota would have refused. Keys whose quota has changed, or
  /// whose permits are returned by name, are left out.
  std::optional<std::string> FirstRefused() const;

 private:
  struct Key {
    Quota quota;
    bool changed = false;
    std::vector<Admission> charges;
  };
  std::map<std::string, Key, std::less<>> keys_;
};

/// The permits of a concurrency quota that clients have, by name and in the store's time. Not
/// thread-safe.
class InFlight {
 public:
  void Admitted(std::int64_t name, Nanos time, std::int64_t cost);
  /// A client received it. A permit that the store granted but that no client ever receives, since
  /// the answer came too late, is in flight until it is released.
  void Claimed(std::int64_t name);
  /// The client is done with it, whether or not the store learns of that.
  void Done(std::int64_t name, Nanos time);
  /// The store no longer counts it.
  void Released(std::int64_t name, Nanos time);

  /// Describes when there were more than the quota's limit. A permit that its client keeps is in
  /// flight for the quota's lease.
  std::optional<std::string> FirstTooMany(const Quota& quota) const;

 private:
  struct Permit {
    Nanos from = 0;
    std::int64_t cost = 0;
    std::optional<Nanos> done = {};
    std::optional<Nanos> released = {};
    bool claimed = false;
  };
  std::map<std::int64_t, Permit> permits_;
};

}  // namespace weir::simulation
