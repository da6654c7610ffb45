#include "store/guard/asio_timers.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <unordered_map>
#include <utility>

namespace weir::store::guard {

/// Outlives its owner while a handler is still queued; nothing is left in `running` then.
struct AsioTimers::State {
  explicit State(boost::asio::io_context& context) : io(context) {}

  struct Running {
    std::unique_ptr<boost::asio::steady_timer> timer;
    std::function<void()> run;
  };

  boost::asio::io_context& io;
  Id last = 0;
  std::unordered_map<Id, Running> running;
};

AsioTimers::AsioTimers(boost::asio::io_context& io) : state_(std::make_shared<State>(io)) {}

AsioTimers::~AsioTimers() { state_->running.clear(); }

Timers::Id AsioTimers::After(std::chrono::nanoseconds wait, std::function<void()> run) {
  const Id id = ++state_->last;
  auto due = [state = state_, id](const boost::system::error_code& error = {}) {
    const auto found = state->running.find(id);
    if (error || found == state->running.end()) return;
    const std::function<void()> now = std::move(found->second.run);
    state->running.erase(found);
    now();
  };
  std::unique_ptr<boost::asio::steady_timer> timer;
  if (wait.count() <= 0) {
    boost::asio::post(state_->io, std::move(due));  // avoids the system call that a timer needs
  } else {
    timer = std::make_unique<boost::asio::steady_timer>(state_->io);
    timer->expires_after(wait);
    timer->async_wait(std::move(due));
  }
  state_->running.emplace(id, State::Running{std::move(timer), std::move(run)});
  return id;
}

void AsioTimers::Cancel(Id id) { state_->running.erase(id); }

}  // namespace weir::store::guard
