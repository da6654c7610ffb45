#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "remote/service_client.h"
#include "slots/execution.h"
#include "slots/slot.h"
#include "slots/slot_store.h"
#include "weir/result.h"

namespace weir::app {

/// What `weir slots` works on: a running service, or a store directly. Calls block.
///
/// Only Assign, Claim and Finish are thread-safe.
class SlotsTarget {
 public:
  virtual ~SlotsTarget() = default;

  virtual Result<std::vector<slots::Answer>> Assign(std::vector<slots::Ask> asks) = 0;
  virtual Result<slots::Config> GetConfig(const std::string& name) = 0;
  virtual Result<std::vector<slots::WindowLoad>> ListWindows(const std::string& config,
                                                             slots::Millis from,
                                                             std::size_t limit) = 0;
  virtual Result<slots::Findings> Verify() = 0;

  /// The store, if it works on one directly; valid as long as this lives.
  virtual slots::SlotStore* store() { return nullptr; }

  virtual Result<slots::Claim> Claim(const slots::ClaimRequest& request) = 0;
  virtual Result<std::vector<slots::Finished>> Finish(const std::vector<slots::Finish>& ends) = 0;
};

/// A running service; the client's error if there is none.
Result<std::unique_ptr<SlotsTarget>> OpenService(Result<ServiceClient> client);
/// sqlite:FILE or postgres://….
Result<std::unique_ptr<SlotsTarget>> OpenStore(const std::string& url);

/// Appends an event in the form that the service's API expects.
void AppendAsk(JsonWriter& json, const slots::Ask& ask);

}  // namespace weir::app
