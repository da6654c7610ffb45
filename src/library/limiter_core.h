#pragma once

// What is behind a weir::Limiter: a decider in this process, or calls to a service.

#include <chrono>
#include <memory>
#include <string>
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
    bool applied = false;          ///< Released, or settled, by this call.
    std::string reservation = {};  ///< If something was reserved.
  };
  /// A view.
  struct Question {
    store::Op op;
    LimitRequest request = {};
    std::string_view leases = {};          ///< kRelease
    std::chrono::milliseconds reserve{0};  ///< kCharge: how long it can be settled; 0: not at all
    std::string_view settles = {};         ///< kSettle
  };

  virtual ~Core() = default;
  virtual Result<Told> Ask(const Question& question) = 0;
  virtual LimiterPolicies policies() const = 0;
  virtual Status health() const = 0;
};

namespace library {

/// Settings of a limiter in this process that are not in its options, only in a configuration.
struct EmbeddedSettings {
  policy::CompileOptions compile = {.default_policy = policy::DefaultPolicy(),
                                    .stores = std::vector<std::string>()};
  std::size_t connections = 0;
  std::uint32_t breaker_failures = 5;
  std::size_t max_refusals = 65'536;
  /// Used from this: where the limits are and where they move (store, store_name, stores, move),
  /// and what happens to requests that no policy applies to (deny_unmatched).
  config::Config places = {};
};

Result<std::unique_ptr<Limiter::Core>> OpenEmbedded(LimiterOptions options,
                                                    EmbeddedSettings settings);
Result<std::unique_ptr<Limiter::Core>> OpenService(LimiterOptions options);

}  // namespace library
}  // namespace weir
