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

/// The limit of users that have none; rate_limit 0: they are unknown.
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
  /// What only the program knows of its backends, for the operator's view.
  struct Probes {
    std::function<std::uint64_t()> queue;         ///< events that wait for delivery; empty: unknown
    std::function<std::uint64_t()> dead_letters;  ///< empty: unknown
    /// The sender's counts, if it is in this process.
    std::function<const DeliveryStats*()> deliveries;
    /// Those of senders outside, as they report them; empty: there are none outside.
    std::function<SenderFigures()> senders;

    std::optional<std::int64_t> DeadLetters() const;
    /// Nothing if no sender has ever reported: one without --store may be delivering all the same.
    std::optional<SenderFigures> Figures() const;
  };

  /// What is given must outlive this.
  NotifyApi(notify::Gateway& gateway, const Clock& clock, Probes probes, DefaultCap cap = {});
  ~NotifyApi();

  /// Stands before a handler.
  using Protect = std::function<http::Handler(http::Handler)>;

  /// Before the service starts. `admin` stands before what is under /admin, `change` before what
  /// changes a user's limit.
  void AddTo(http::Router& router, const Protect& admin, const Protect& change);

  /// Limits of single channels of users, which have paths of their own.
  ChannelApi& channels();

  /// Users' limits, of kind "notify". To undo a change keeps the count of the window; a limit
  /// that was removed comes back with a count of 0.
  admin::Undoable limits();

  /// weir_notify_sends_total, weir_notify_latency_seconds, weir_notify_waiting, and, if the sender
  /// is in this process, weir_notify_queue, weir_notify_dead_letters and what DeliveryStats
  /// collects; if not, weir_notify_senders: each sender has the metrics of its own work.
  void Collect(telemetry::TextWriter& out) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace weir::notify
