#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

#include "slots/slot_store.h"

namespace weir::slots {

struct CombinerOptions {
  std::size_t max_calls = 2;          ///< concurrent calls to the store
  std::size_t max_waiting = 200'000;  ///< events; more are refused with kUnavailable
};

/// Collects requests while the store is busy and submits them together: one call, one commit.
///
/// Thread-safe. Must outlive its requests; `store` must outlive this.
class Combiner {
 public:
  using Done = std::function<void(Result<std::vector<Answer>>)>;

  explicit Combiner(SlotStore& store, CombinerOptions options = {})
      : store_(store), options_(options) {}

  /// One or more asks, at most kMaxBatch; answered in order.
  void Assign(std::vector<Ask> asks, Done done);

 private:
  struct Request {
    std::vector<Ask> asks;
    Done done;
  };

  void Pump();
  std::vector<Request> TakeNext();
  void Call(std::vector<Request> requests);
  static void Distribute(std::vector<Request>& requests, Result<std::vector<Answer>> answers);

  SlotStore& store_;
  const CombinerOptions options_;
  std::mutex mutex_;
  std::deque<Request> waiting_;
  std::size_t waiting_events_ = 0;
  std::size_t calls_ = 0;
};

}  // namespace weir::slots
