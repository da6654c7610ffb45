#pragma once

#include <functional>
#include <memory>
#include <string>

#include "admin/undoable.h"
#include "protocol/http/router.h"
#include "slots/api/slots_watch.h"
#include "slots/slot_store.h"

namespace weir::slots {

/// The HTTP API of slots: /api/v1/slots for events, /admin/rate-limit for configs and operators.
/// docs/reference/slots-api.md describes every path.
///
/// Thread-safe: handlers run on any reactor. Must outlive the router's last request.
class SlotsApi {
 public:
  /// `store` must outlive this.
  explicit SlotsApi(SlotStore& store);
  ~SlotsApi();

  /// Wraps a handler.
  using Protect = std::function<http::Handler(http::Handler)>;

  /// Wraps a handler so that an audit log entry is written before each success response; the action
  /// is like "slot.cancel".
  using Audit = std::function<http::Handler(std::string action, http::Handler)>;

  /// Called with the request, the config and the number of events of each claim.
  using Claimed = std::function<void(const http::Request&, const std::string&, std::size_t)>;

  /// Call before the service starts. `claimed` may be empty. `audited` wraps what changes an event
  /// that has a slot; `change` wraps what changes a config, `admin` everything else
  /// under /admin.
  void AddTo(http::Router& router, const Protect& admin, const Protect& change,
             const Audit& audited, const Claimed& claimed);

  /// The configs, of kind "slots". Restoring one creates a new version with the old contents.
  admin::Undoable configs();

  /// Releases the requests that wait to be read, and the store. Call it before the store and the
  /// reactors are destroyed, and not while requests come in or OnSecond runs.
  void Close();

  /// Metrics and state of the store and the API.
  SlotsWatch& watch() noexcept;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace weir::slots
