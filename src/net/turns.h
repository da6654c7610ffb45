#pragma once

#include <boost/asio/detail/epoll_reactor.hpp>
#include <boost/asio/detail/op_queue.hpp>
#include <boost/asio/io_context.hpp>

namespace weir::net {

/// The connections of a reactor that have more to do than their share. One of them has its turn
/// each time the reactor has looked for news: so whoever asks little waits for one turn of those
/// who ask much, however many there are.
///
/// Thread safety: belongs to its reactor's thread.
class Turns {
 public:
  using Operation = boost::asio::detail::operation;

  explicit Turns(boost::asio::io_context& context)
      : reactor_(boost::asio::use_service<boost::asio::detail::epoll_reactor>(context)) {}
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  /// Runs `turn` when those before it have had theirs. It must call Next when it is run.
  void Await(Operation& turn) {
    waiting_.push(&turn);
    if (!posted_) Next();
  }

  /// A turn has begun: the next one stands behind whatever has arrived meanwhile.
  void Next() {
    Operation* const turn = waiting_.front();
    posted_ = turn != nullptr;
    if (!posted_) return;
    waiting_.pop();
    reactor_.post_immediate_completion(turn, /*is_continuation=*/false);
  }

 private:
  boost::asio::detail::epoll_reactor& reactor_;
  boost::asio::detail::op_queue<Operation> waiting_;
  bool posted_ = false;
};

}  // namespace weir::net
