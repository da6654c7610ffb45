#pragma once

#include <algorithm>
#include <boost/asio/detail/epoll_reactor.hpp>
#include <boost/asio/detail/op_queue.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>

#include "net/timer_wheel.h"

namespace weir::net {

/// The connections of a reactor that have more work than their share. One of them has its turn
/// each time the reactor has polled for events: so a connection with little work waits for one turn
/// of the busy ones, however many there are.
///
/// Bytes that are read only to be discarded, from peers that have had their last answer, are also
/// counted: all connections of the reactor share one allowance. A peer that sends more fills its
/// own window and waits, and does not keep the reactor busy.
///
/// Thread safety: belongs to its reactor's thread.
class Turns final : private TimerWheel::Entry {
 public:
  using Operation = boost::asio::detail::operation;

  /// How much may be discarded at once, as much as one peer may send, and then per tick: 32 MiB
  /// a second, which take a reactor 2 to 3 % of its time.
  static constexpr std::size_t kMostSpare = std::size_t{16} << 20U;
  static constexpr std::size_t kSparePerTick = (std::size_t{32} << 20U) / 10;

  Turns(boost::asio::io_context& context, TimerWheel& timers)
      : reactor_(boost::asio::use_service<boost::asio::detail::epoll_reactor>(context)),
        timers_(timers) {}
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  /// Runs `turn` when those before it have had theirs. It must call Next when it is run.
  void Await(Operation& turn) {
    waiting_.push(&turn);
    if (!posted_) Next();
  }

  /// Like Await, but also waits for some of the allowance.
  void AwaitSpare(Operation& turn) {
    sparing_.push(&turn);
    if (!posted_) Next();
  }

  /// How many bytes may be discarded now.
  std::size_t spare() const noexcept { return spare_; }
  /// Records how many were discarded.
  void Spend(std::size_t bytes) noexcept {
    spare_ -= std::min(spare_, bytes);
    if (spare_ < kMostSpare) timers_.Set(*this, std::chrono::milliseconds(0));
  }

  /// A turn has begun: the next one queues behind whatever has arrived meanwhile.
  void Next() {
    if (Operation* const turn = spare_ > 0 ? sparing_.front() : nullptr) {
      sparing_.pop();
      waiting_.push(turn);
    }
    Operation* const turn = waiting_.front();
    posted_ = turn != nullptr;
    if (!posted_) return;
    waiting_.pop();
    reactor_.post_immediate_completion(turn, /*is_continuation=*/false);
  }

 private:
  void OnDeadline() override {
    spare_ = std::min(kMostSpare, spare_ + kSparePerTick);
    if (spare_ < kMostSpare) timers_.Set(*this, std::chrono::milliseconds(0));
    if (!posted_) Next();
  }

  boost::asio::detail::epoll_reactor& reactor_;
  TimerWheel& timers_;
  boost::asio::detail::op_queue<Operation> waiting_;
  boost::asio::detail::op_queue<Operation> sparing_;
  std::size_t spare_ = kMostSpare;
  bool posted_ = false;
};

}  // namespace weir::net
