#pragma once

#include <functional>
#include <string>

#include "protocol/http/router.h"
#include "slots/api/large_bodies.h"
#include "slots/api/slots_watch.h"
#include "slots/slot_store.h"

namespace weir::slots {

/// The HTTP API of execution: an event's history, due events, claims and their results.
///
/// Thread-safe: handlers run on any reactor. Must outlive the router's last request.
class ExecutionApi {
 public:
  using Protect = std::function<http::Handler(http::Handler)>;
  using Claimed = std::function<void(const http::Request&, const std::string&, std::size_t)>;

  /// All must outlive this.
  ExecutionApi(SlotStore& store, SlotsWatch& watch, LargeBodies& bodies)
      : store_(store), watch_(watch), bodies_(bodies) {}

  /// Call before the service starts. `claimed` is called with the request, the config and the count
  /// of events of each claim; it may be empty. `admin` wraps the handlers under /admin.
  void AddTo(http::Router& router, const Protect& admin, const Claimed& claimed);

 private:
  void Look(const http::Request& request, http::Reply reply);
  void Due(const http::Request& request, http::Reply reply);
  void Claim(const http::Request& request, const Claimed& claimed, http::Reply reply);
  void Done(const http::Request& request, http::Reply reply);
  void Failed(const http::Request& request, http::Reply reply);
  void DoneOne(const http::Request& request, http::Reply reply);
  void FailedOne(const http::Request& request, http::Reply reply);
  void Backlogs(const http::Request& request, http::Reply reply);
  void FinishMany(const http::Request& request, bool failed, http::Reply reply);
  void FinishParsed(Result<std::vector<Finish>> ends, http::Reply reply);
  void FinishOne(Result<Finish> end, http::Reply reply);

  SlotStore& store_;
  SlotsWatch& watch_;
  LargeBodies& bodies_;
};

/// 404: there is no such event.
http::Response UnknownEvent(const std::string& event);
/// 409 if the event's state does not allow the operation; otherwise as for any error.
http::Response EventError(const Error& error, const std::string& event);

}  // namespace weir::slots
