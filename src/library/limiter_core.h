#pragma once

// What stands behind a weir::Limiter: a decider in this process, or a service that is asked.

#include <memory>
#include <string_view>

#include "config/config.h"
#include "policy/policy_set.h"
#include "store/store.h"
#include "weir/limiter.h"
#include "weir/result.h"

namespace weir {

/// Thread safety: as Limiter.
class Limiter::Core {
 public:
  struct Told {
    LimitAnswer answer = {};
    bool applied = false;  ///< Of a release: something of it was still held.
  };

  virtual ~Core() = default;
  virtual Result<Told> Ask(store::Op op, const LimitRequest& request, std::string_view leases) = 0;
  virtual LimiterPolicies policies() const = 0;
  virtual Status health() const = 0;
};

namespace library {

/// What a limiter in this process needs beside its options: what only a configuration says.
struct EmbeddedSettings {
  policy::CompileOptions compile = {.default_policy = policy::DefaultPolicy(),
                                    .stores = std::vector<std::string>()};
  std::size_t connections = 0;
  std::uint32_t breaker_failures = 5;
  std::size_t max_refusals = 65'536;
  /// Of this: where the limits are and where they move (store, store_name, stores, move).
  config::Config places = {};
};

Result<std::unique_ptr<Limiter::Core>> OpenEmbedded(LimiterOptions options,
                                                    EmbeddedSettings settings);
Result<std::unique_ptr<Limiter::Core>> OpenService(LimiterOptions options);

}  // namespace library
}  // namespace weir
