#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "drivers/xds/subscription.h"
#include "policy/definition.h"
#include "policy/yaml.h"
#include "telemetry/metrics.h"
#include "weir/result.h"

namespace weir::app {

/// Policies that a control plane gives (xDS). The last state that was put in force is kept in the
/// data folder, so that a node that starts while the control plane is down has its limits.
///
/// Thread-safe.
class ManagedPolicies {
 public:
  /// Puts policies in force in place of those before, unless there are problems; says what is
  /// wrong.
  using Apply = std::function<std::vector<policy::yaml::Problem>(
      std::vector<policy::Definition>, std::vector<policy::yaml::Problem>)>;

  /// Null if xds.server is not set. Applies what was kept, and subscribes.
  static Result<std::unique_ptr<ManagedPolicies>> Open(const config::Config& config, Apply apply);

  /// Some state is in force: one of the control plane's, or the one that was kept.
  bool known() const noexcept { return known_.load(std::memory_order_acquire); }
  /// weir_xds_*.
  void Collect(telemetry::TextWriter& out) const;

 private:
  ManagedPolicies(const config::Config& config, Apply apply);
  Status PutInForce(const xds::State& state);
  void Restore();
  void Keep(const std::string& bytes) const;

  const std::string path_;  // of the state that is kept
  const bool lenient_;
  const Apply apply_;
  std::atomic<bool> known_{false};
  std::string in_force_;  // serialized; of the subscription's thread
  std::optional<xds::Subscription> subscription_;
};

}  // namespace weir::app
