#pragma once

#include <functional>
#include <vector>

#include "notify/event.h"
#include "weir/result.h"

namespace weir::notify {

/// Publishes events to the topic.
///
/// Thread-safe: any thread may call Publish.
class Publisher {
 public:
  using Done = std::function<void(Status)>;

  virtual ~Publisher() = default;

  /// `done` is called once, within a bounded time (the publisher's timeout), on a thread of the
  /// publisher or before Publish returns; it must not block. Ok: the broker has confirmed the
  /// event. kUnavailable: it has not, and there are no more attempts; the event may still have
  /// reached the topic (a confirmation can be lost). kResourceExhausted: refused immediately, too
  /// many are waiting. Events of one user keep the order in which they were published.
  virtual void Publish(Event event, Done done) = 0;

  /// `done` gets the statuses in the order of the events, once all are known.
  void PublishAll(std::vector<Event> events, std::function<void(std::vector<Status>)> done);
};

}  // namespace weir::notify
