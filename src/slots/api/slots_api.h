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

  /// Stands before a handler.
  using Protect = std::function<http::Handler(http::Handler)>;

  /// Puts an entry of the audit log before each answer of success; the action is like
  /// "slot.cancel".
  using Audit = std::function<http::Handler(std::string action, http::Handler)>;

  /// Told who claimed how many events of which config.
  using Claimed = std::function<void(const http::Request&, const std::string&, std::size_t)>;

  /// Before the service starts. `claimed` may be empty. `audited` stands before what changes an
  /// event that has a slot; `change` stands before what changes a config, `admin` before all else
  /// under /admin.
  void AddTo(http::Router& router, const Protect& admin, const Protect& change,
             const Audit& audited, const Claimed& claimed);

  /// The configs, of kind "slots". One that comes back is a new version, as it was.
  admin::Undoable configs();

  /// Lets go of the requests that wait to be read, and of the store. Before the store and the
  /// reactors go, which they would be handed to; not while requests come in, nor OnSecond.
  void Close();

  /// What is seen of the store and of the API.
  SlotsWatch& watch() noexcept;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace weir::slots
