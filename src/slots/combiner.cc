#include "slots/combiner.h"

#include <iterator>
#include <memory>
#include <utility>

namespace weir::slots {

void Combiner::Assign(std::vector<Ask> asks, Done done) {
  {
    std::unique_lock lock(mutex_);
    if (waiting_events_ + asks.size() > options_.max_waiting) {
      lock.unlock();
      return done(Error{Code::kUnavailable, "too many events are waiting for a slot; try again"});
    }
    waiting_events_ += asks.size();
    waiting_.push_back({std::move(asks), std::move(done)});
  }
  Pump();
}

void Combiner::Pump() {
  for (;;) {
    std::vector<Request> next;
    {
      const std::lock_guard lock(mutex_);
      if (calls_ >= options_.max_calls || waiting_.empty()) return;
      next = TakeNext();
      ++calls_;
    }
    Call(std::move(next));
  }
}

std::vector<Combiner::Request> Combiner::TakeNext() {
  std::vector<Request> taken;
  std::size_t events = 0;
  while (!waiting_.empty()) {
    const std::size_t more = waiting_.front().asks.size();
    if (!taken.empty() && events + more > kMaxBatch) break;
    events += more;
    taken.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  waiting_events_ -= events;
  return taken;
}

void Combiner::Call(std::vector<Request> requests) {
  std::vector<Ask> asks;
  if (requests.size() == 1) {
    asks = std::move(requests.front().asks);
    requests.front().asks.resize(asks.size());
  } else {
    for (Request& request : requests) {
      asks.insert(asks.end(), std::make_move_iterator(request.asks.begin()),
                  std::make_move_iterator(request.asks.end()));
    }
  }
  auto shared = std::make_shared<std::vector<Request>>(std::move(requests));
  store_.AssignMany(std::move(asks), [this, shared](Result<std::vector<Answer>> answers) {
    {
      const std::lock_guard lock(mutex_);
      --calls_;
    }
    // Before the answers are handed out, so that the store does not idle meanwhile.
    Pump();
    Distribute(*shared, std::move(answers));
  });
}

void Combiner::Distribute(std::vector<Request>& requests, Result<std::vector<Answer>> answers) {
  if (!answers.ok() || requests.size() == 1) {
    for (Request& request : requests) request.done(answers);
    return;
  }
  auto next = answers->begin();
  for (Request& request : requests) {
    const auto end = next + static_cast<std::ptrdiff_t>(request.asks.size());
    request.done(std::vector<Answer>(std::make_move_iterator(next), std::make_move_iterator(end)));
    next = end;
  }
}

}  // namespace weir::slots
