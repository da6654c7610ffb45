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

/// Where `weir slots` works: a running service, or a store directly. Calls block.
///
/// Thread-safe as far as Assign, Claim and Finish go.
class SlotsTarget {
 public:
  virtual ~SlotsTarget() = default;

  virtual Result<std::vector<slots::Answer>> Assign(std::vector<slots::Ask> asks) = 0;
  virtual Result<slots::Config> GetConfig(const std::string& name) = 0;
  virtual Result<std::vector<slots::WindowLoad>> ListWindows(const std::string& config,
                                                             slots::Millis from,
                                                             std::size_t limit) = 0;
  virtual Result<slots::Findings> Verify() = 0;

  /// If it works on one directly: the store, as long as this lives.
  virtual slots::SlotStore* store() { return nullptr; }

  virtual Result<slots::Claim> Claim(const slots::ClaimRequest& request) = 0;
  virtual Result<std::vector<slots::Finished>> Finish(const std::vector<slots::Finish>& ends) = 0;
};

/// A running service; its error if there is no client for it.
Result<std::unique_ptr<SlotsTarget>> OpenService(Result<ServiceClient> client);
/// sqlite:FILE or postgres://….
Result<std::unique_ptr<SlotsTarget>> OpenStore(const std::string& url);

/// Appends an event as the service's API wants it.
void AppendAsk(JsonWriter& json, const slots::Ask& ask);

}  // namespace weir::app
