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

/// Policies from a control plane (xDS). The last state that was put in force is kept in the
/// data folder, so that a node that starts while the control plane is down has its limits.
///
/// Thread-safe.
class ManagedPolicies {
 public:
  /// Replaces the policies in force, unless there are problems; returns what is
  /// wrong.
  using Apply = std::function<std::vector<policy::yaml::Problem>(
      std::vector<policy::Definition>, std::vector<policy::yaml::Problem>)>;

  /// Null if xds.server is not set. Applies the stored state, and subscribes.
  static Result<std::unique_ptr<ManagedPolicies>> Open(const config::Config& config, Apply apply);

  /// A state is in force: one from the control plane, or the stored one.
  bool known() const noexcept { return known_.load(std::memory_order_acquire); }
  /// weir_xds_*.
  void Collect(telemetry::TextWriter& out) const;

 private:
  ManagedPolicies(const config::Config& config, Apply apply);
  Status PutInForce(const xds::State& state);
  void Restore();
  void Keep(const std::string& bytes) const;

  const std::string path_;  // of the stored state
  const bool lenient_;
  const Apply apply_;
  std::atomic<bool> known_{false};
  std::string in_force_;  // serialized; used only by the subscription's thread
  std::optional<xds::Subscription> subscription_;
};

}  // namespace weir::app
