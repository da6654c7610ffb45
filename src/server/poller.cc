#include "server/poller.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

namespace weir::server {
namespace asio = boost::asio;
namespace {

constexpr int kMaxEvents = 256;

Error SystemError(const char* what) {
  return {Code::kUnavailable, std::string(what) + ": " + std::generic_category().message(errno)};
}

}  // namespace

Result<std::shared_ptr<Poller>> Poller::Make(asio::io_context& context) {
  auto poller = std::make_shared<Poller>(context);
  if (Status opened = poller->Open(); !opened.ok()) {
    return opened.error();
  }
  poller->Wait();
  return poller;
}

Poller::Poller(asio::io_context& context) : context_(context), epoll_(context) {
  ready_.reserve(kMaxEvents);
}

Status Poller::Open() {
  const int fd = epoll_create1(EPOLL_CLOEXEC);
  if (fd < 0) {
    return SystemError("cannot make an epoll");
  }
  boost::system::error_code error;
  epoll_.assign(fd, error);
  if (error) {
    return Error{Code::kUnavailable, "cannot watch an epoll: " + error.message()};
  }
  return {};
}

Status Poller::Add(int fd, Watcher& watcher) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.ptr = &watcher;
  if (epoll_ctl(epoll_.native_handle(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return SystemError("cannot watch a socket");
  }
  return {};
}

void Poller::Remove(int fd, Watcher& watcher) noexcept {
  epoll_ctl(epoll_.native_handle(), EPOLL_CTL_DEL, fd, nullptr);
  std::replace(ready_.begin(), ready_.end(), &watcher, static_cast<Watcher*>(nullptr));
  std::replace(ending_.begin(), ending_.end(), &watcher, static_cast<Watcher*>(nullptr));
  std::replace(deferred_.begin(), deferred_.end(), &watcher, static_cast<Watcher*>(nullptr));
}

void Poller::Defer(Watcher& watcher) {
  deferred_.push_back(&watcher);
  if (!std::exchange(resume_posted_, true)) {
    asio::post(context_, [self = shared_from_this()] { self->RunDeferred(); });
  }
}

void Poller::Wait() {
  // The pending wait owns this object.
  epoll_.async_wait(Descriptor::wait_read,
                    [self = shared_from_this()](boost::system::error_code error) {
                      if (!error) {
                        self->Dispatch();
                        self->Wait();
                      }
                    });
}

void Poller::Dispatch() {
  std::array<epoll_event, kMaxEvents> events;
  const int count = epoll_wait(epoll_.native_handle(), events.data(), kMaxEvents, 0);
  ready_.clear();
  for (int i = 0; i < count; ++i) {
    ready_.push_back(static_cast<Watcher*>(events[static_cast<std::size_t>(i)].data.ptr));
  }
  for (std::size_t i = 0; i < ready_.size(); ++i) {
    if (ready_[i] != nullptr) {
      ready_[i]->OnReady(events[i].events);
    }
  }
  ready_.clear();
  EndRound();
}

void Poller::EndRound() {
  for (std::size_t i = 0; i < ending_.size(); ++i) {
    if (Watcher* const watcher = std::exchange(ending_[i], nullptr)) {
      watcher->OnRoundEnd();
    }
  }
  ending_.clear();
}

void Poller::RunDeferred() {
  resume_posted_ = false;
  // Who defers itself again waits for the next turn.
  const std::size_t turn = deferred_.size();
  for (std::size_t i = 0; i < turn; ++i) {
    if (Watcher* const watcher = std::exchange(deferred_[i], nullptr)) {
      watcher->OnReady(0);
    }
  }
  deferred_.erase(deferred_.begin(), deferred_.begin() + static_cast<std::ptrdiff_t>(turn));
  EndRound();
}

}  // namespace weir::server
