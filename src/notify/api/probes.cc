#include "notify/api/notify_api.h"

namespace weir::notify {

std::optional<std::int64_t> NotifyApi::Probes::DeadLetters() const {
  if (!dead_letters) return std::nullopt;
  return static_cast<std::int64_t>(dead_letters());
}

std::optional<SenderFigures> NotifyApi::Probes::Figures() const {
  if (deliveries) {
    SenderFigures here = deliveries()->figures();
    if (queue) here.lag = static_cast<std::int64_t>(queue());
    return here;
  }
  if (!senders) return std::nullopt;
  const SenderFigures outside = senders();
  const bool reported = outside.senders > 0 || outside.delivered > 0 || outside.dead > 0 ||
                        outside.retries > 0 || outside.dropped > 0 || outside.delayed > 0;
  return reported ? std::optional(outside) : std::nullopt;
}

}  // namespace weir::notify
