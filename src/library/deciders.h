#pragma once

// Where a weir::Limiter's checks are decided: on the calling thread for a store in this process, on
// a separate thread for a distant one.

#include <chrono>
#include <functional>
#include <memory>

#include "library/limiter_core.h"
#include "limiter/limiter.h"
#include "limiter/policy_limiter.h"
#include "policy/catalog.h"
#include "weir/result.h"

namespace weir::library {

/// How often a store in this process frees keys whose quota is fully available.
inline constexpr std::chrono::hours kSweepEvery{1};

/// Thread-safe.
class Decider {
 public:
  virtual ~Decider() = default;
  /// Decides the check and calls `told` while its verdicts are valid; both before this returns.
  virtual void Decide(limiter::Check& check, const std::function<void(limiter::Check&)>& told) = 0;
  virtual Status health() const = 0;
};

/// `shared` must outlive it.
std::unique_ptr<Decider> MemoryDecider(limiter::Shared& shared, std::size_t max_keys);
/// settings.places lists the stores; one of them may be in this process. `settings` and `catalog`
/// must outlive it, too.
Result<std::unique_ptr<Decider>> DistantDecider(limiter::Shared& shared, policy::Catalog& catalog,
                                                const LimiterOptions& options,
                                                const EmbeddedSettings& settings);

}  // namespace weir::library
