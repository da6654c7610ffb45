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

/// Something that was let pass, in the store's time, or given back.
struct Admission {
  Nanos time = 0;
  std::int64_t cost = 0;  ///< less than 0: given back
};

/// Replays admissions through the step of a quota: which of them it would have refused, in words.
std::optional<std::string> FirstRefused(const Quota& quota,
                                        const std::vector<Admission>& admissions);

/// What a store charged, in its own time, less what was returned to it: returned permits count as
/// never charged, and the quota must grant what is left. Not thread-safe.
class Ledger {
 public:
  void Charged(std::string_view key, const Quota& quota, Admission charge);
  /// `count` of the permits of `key` that were charged at `at`.
  void Returned(std::string_view key, Nanos at, std::int64_t count);

  /// The first charge that its quota would have refused, in words. Keys whose quota has changed, or
  /// whose permits come back by name, are left out.
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
  /// A client was told of it. One that the store granted and that no client ever hears of, since
  /// the answer came too late, is in flight until somebody releases it.
  void Claimed(std::int64_t name);
  /// The client is done with it, whether or not the store learns of that.
  void Done(std::int64_t name, Nanos time);
  /// The store no longer counts it.
  void Released(std::int64_t name, Nanos time);

  /// When there were more than the quota's limit, in words. A permit that its client keeps is in
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
