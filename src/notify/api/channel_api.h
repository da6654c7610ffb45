#pragma once

#include <functional>

#include "admin/undoable.h"
#include "notify/gateway.h"
#include "protocol/http/router.h"

namespace weir::notify {

/// Stores the limit parsed from `body`, and replies with it as stored.
void SaveLimit(Gateway& gateway, Result<UserLimit> limit, std::string_view body, http::Reply reply);

/// Whether a valid request to change or remove a limit resets the count to 0.
bool ResetsCount(const http::Request& request);

/// The HTTP API for limits of one channel of a user, in addition to the user's own:
/// /api/config/{userId}/channels/{channel}. See docs/reference/notify-api.md.
///
/// Thread-safe: handlers run on any reactor. Must outlive the router's last request.
class ChannelApi {
 public:
  /// Both must outlive this.
  ChannelApi(Gateway& gateway, const Clock& clock) : gateway_(gateway), clock_(clock) {}

  /// Call before the service starts. `change` wraps what changes a limit.
  void AddTo(http::Router& router, const std::function<http::Handler(http::Handler)>& change);

  /// Limits of channels, of kind "notify_channel" and named "channel/user".
  admin::Undoable limits();

 private:
  void Put(const http::Request& request, http::Reply reply);
  void Get(const http::Request& request, http::Reply reply);
  void Remove(const http::Request& request, http::Reply reply);

  Gateway& gateway_;
  const Clock& clock_;
};

}  // namespace weir::notify
