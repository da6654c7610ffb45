#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "admin/undoable.h"
#include "notify/api/channel_api.h"
#include "notify/delivery_stats.h"
#include "notify/gateway.h"
#include "protocol/http/router.h"
#include "telemetry/metrics.h"
#include "weir/clock.h"

namespace weir::notify {

/// The limit of users that have none; rate_limit 0: no such limit, so they are unknown users.
struct DefaultCap {
  std::int64_t rate_limit = 0;
  std::int64_t time_window = 0;
};

/// The HTTP API of the notification gateway: /api/config, /api/send, /api/quota and /admin/notify.
/// docs/reference/notify-api.md describes every path.
///
/// Thread-safe: handlers run on any reactor. Must outlive the router's last request.
class NotifyApi {
 public:
  /// What only the program knows about its backends, for operators.
  struct Probes {
    std::function<std::uint64_t()> queue;         ///< events that wait for delivery; empty: unknown
    std::function<std::uint64_t()> dead_letters;  ///< empty: unknown
    /// The sender's counts, if it is in this process.
    std::function<const DeliveryStats*()> deliveries;
    /// Those of external senders, as they report them; empty: there are none.
    std::function<SenderFigures()> senders;

    std::optional<std::int64_t> DeadLetters() const;
    /// nullopt if no sender has ever reported: one without --store may still be delivering.
    std::optional<SenderFigures> Figures() const;
  };

  /// All arguments must outlive this.
  NotifyApi(notify::Gateway& gateway, const Clock& clock, Probes probes, DefaultCap cap = {});
  ~NotifyApi();

  /// Wraps a handler.
  using Protect = std::function<http::Handler(http::Handler)>;

  /// Call before the service starts. `admin` wraps what is under /admin, `change` what
  /// changes a user's limit.
  void AddTo(http::Router& router, const Protect& admin, const Protect& change);

  /// Limits of single channels of users, which have their own paths.
  ChannelApi& channels();

  /// Users' limits, of kind "notify". Undoing a change keeps the window's count; a limit
  /// that was removed is restored with a count of 0.
  admin::Undoable limits();

  /// weir_notify_sends_total, weir_notify_latency_seconds, weir_notify_waiting, and, if the sender
  /// is in this process, weir_notify_queue, weir_notify_dead_letters and the metrics of
  /// DeliveryStats; if not, weir_notify_senders: each sender has metrics of its own work.
  void Collect(telemetry::TextWriter& out) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace weir::notify
