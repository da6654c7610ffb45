#pragma once

#include <functional>
#include <memory>

#include "server/router.h"
#include "slots/slot_store.h"

namespace weir::server {

/// The HTTP face of slots: /api/v1/slots for events, /admin/rate-limit for configs and operators.
/// docs/reference/slots-api.md describes every path.
///
/// Thread-safe: handlers run on any reactor. Must outlive the router's last request.
class SlotsApi {
 public:
  /// `store` must outlive this.
  explicit SlotsApi(slots::SlotStore& store);
  ~SlotsApi();

  /// Stands before the handlers under /admin.
  using Protect = std::function<http::Handler(http::Handler)>;

  /// Before the service starts.
  void AddTo(Router& router, const Protect& protect);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace weir::server
