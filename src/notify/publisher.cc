#include "notify/publisher.h"

#include <atomic>
#include <memory>
#include <utility>

namespace weir::notify {

void Publisher::PublishAll(std::vector<Event> events,
                           std::function<void(std::vector<Status>)> done) {
  struct Confirmations {
    std::vector<Status> statuses;
    std::atomic<std::size_t> left;
    std::function<void(std::vector<Status>)> done;
  };
  auto confirmations = std::make_shared<Confirmations>();
  confirmations->statuses.resize(events.size());
  confirmations->left = events.size() + 1;  // plus one for this call
  confirmations->done = std::move(done);
  const auto count_down = [confirmations] {
    if (confirmations->left.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
    confirmations->done(std::move(confirmations->statuses));
  };
  for (std::size_t i = 0; i < events.size(); ++i) {
    Publish(std::move(events[i]), [confirmations, count_down, i](Status status) {
      confirmations->statuses[i] = std::move(status);
      count_down();
    });
  }
  count_down();
}

}  // namespace weir::notify
