#include "net/edge_socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "net/reactor.h"

namespace weir::net {
namespace {

using boost::asio::detail::reactor_op;

// Whether the kernel reports bytes after those just received; it counts the peer's end as one
// more.
bool SaysMore(msghdr& message) noexcept {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level == SOL_TCP && part->cmsg_type == TCP_CM_INQ) {
      int waiting = 0;
      std::memcpy(&waiting, CMSG_DATA(part), sizeof waiting);
      return waiting != 0;
    }
  }
  return true;
}

}  // namespace

EdgeSocket::Wait::Wait(EdgeSocket& of, void (Watcher::*tell_how)())
    : reactor_op({}, &Wait::Perform, &Wait::Complete), socket(of), tell(tell_how) {}

// Called when an edge arrives, or arrived while nothing was waiting. There is nothing to perform:
// the watcher does it. Exhausted: the next wait is for the next edge.
reactor_op::status EdgeSocket::Wait::Perform(reactor_op* /*op*/) noexcept {
  return reactor_op::done_and_exhausted;
}

void EdgeSocket::Wait::Complete(void* owner, boost::asio::detail::operation* op,
                                const boost::system::error_code& /*error*/, std::size_t /*size*/) {
  Wait& wait = *static_cast<Wait*>(op);
  const boost::intrusive_ptr<Counted> alive = std::move(wait.waiting);
  // Without an owner the io_context is being destroyed.
  if (owner == nullptr) return;
  if (&wait == &wait.socket.turn_) wait.socket.turns_.Next();
  if (!wait.socket.is_open()) return;
  Watcher& watcher = *wait.socket.watcher_;
  void (Watcher::*const tell)() = wait.tell;
  (watcher.*tell)();
}

void EdgeSocket::Attach(Counted& owner, Watcher& watcher) noexcept {
  owner_ = &owner;
  watcher_ = &watcher;
}

EdgeSocket::EdgeSocket(Socket socket, Reactor& reactor)
    : reactor_(boost::asio::use_service<AsioReactor>(reactor.context())), turns_(reactor.turns()) {
  reactor_.init_task();
  boost::system::error_code error;
  socket.non_blocking(true, error);
  if (error) return;
  const int fd = socket.release(error);
  if (error) return;
  if (reactor_.register_descriptor(fd, registration_) != 0) {
    reactor_.cleanup_descriptor_data(registration_);
    ::close(fd);
    return;
  }
  fd_ = fd;
  const int on = 1;
  tells_more_ = setsockopt(fd_, SOL_TCP, TCP_INQ, &on, sizeof on) == 0;
}

EdgeSocket::~EdgeSocket() { Close(); }

EdgeSocket::Received EdgeSocket::Receive(std::span<char> space) noexcept {
  iovec place{space.data(), space.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control;
  msghdr message{};
  message.msg_iov = &place;
  message.msg_iovlen = 1;
  if (tells_more_) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
  }
  const ssize_t size = ::recvmsg(fd_, &message, MSG_DONTWAIT);
  if (size > 0) [[likely]] {
    more_ = SaysMore(message);
    unsure_ = true;
    return {Outcome::kBytes, static_cast<std::size_t>(size)};
  }
  more_ = unsure_ = false;
  if (size == 0) return {Outcome::kEnd};
  more_ = errno == EINTR;
  return {errno == EAGAIN || errno == EINTR ? Outcome::kNothing : Outcome::kBroken};
}

std::ptrdiff_t EdgeSocket::Send(std::string_view bytes, std::string_view rest) noexcept {
  const std::size_t total = bytes.size() + rest.size();
  std::size_t sent = 0;
  while (sent < total) {
    // One call for both parts: most messages fit.
    std::array<iovec, 2> parts = {iovec{const_cast<char*>(bytes.data()), bytes.size()},
                                  iovec{const_cast<char*>(rest.data()), rest.size()}};
    msghdr message{};
    message.msg_iov = bytes.empty() ? &parts[1] : parts.data();
    message.msg_iovlen = bytes.empty() || rest.empty() ? 1 : 2;
    const ssize_t size = ::sendmsg(fd_, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (size >= 0) {
      unsure_ = false;
      const auto taken = static_cast<std::size_t>(size);
      sent += taken;
      rest.remove_prefix(taken - std::min(taken, bytes.size()));
      bytes.remove_prefix(std::min(taken, bytes.size()));
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      return -1;
    }
  }
  return static_cast<std::ptrdiff_t>(sent);
}

void EdgeSocket::AwaitReadable() {
  if (readable_.waiting || !is_open()) return;
  if (more_ || unsure_) {
    // No edge will report what is already there.
    readable_.waiting.reset(owner_);
    reactor_.post_immediate_completion(&readable_, /*is_continuation=*/true);
    return;
  }
  Begin(readable_, AsioReactor::read_op);
}

void EdgeSocket::AwaitWritable() {
  if (writable_.waiting || !is_open()) return;
  Begin(writable_, AsioReactor::write_op);
}

void EdgeSocket::AwaitTurn() {
  if (turn_.waiting || !is_open()) return;
  turn_.waiting.reset(owner_);
  turns_.Await(turn_);
}

void EdgeSocket::AwaitSpare() {
  if (turn_.waiting || !is_open()) return;
  turn_.waiting.reset(owner_);
  turns_.AwaitSpare(turn_);
}

void EdgeSocket::Begin(Wait& wait, int kind) {
  wait.waiting.reset(owner_);
  wait.ec_ = {};
  reactor_.start_op(kind, fd_, registration_, &wait, /*is_continuation=*/true,
                    /*allow_speculative=*/true);
}

bool EdgeSocket::ShutDownSend() noexcept { return ::shutdown(fd_, SHUT_WR) == 0; }

void EdgeSocket::Reset() noexcept {
  const linger at_once{1, 0};
  if (is_open()) (void)setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  Close();
}

void EdgeSocket::Close() noexcept {
  if (!is_open()) return;
  // Pending operations complete as aborted and release the connection.
  reactor_.deregister_descriptor(fd_, registration_, /*closing=*/true);
  ::close(std::exchange(fd_, -1));
  reactor_.cleanup_descriptor_data(registration_);
}

}  // namespace weir::net
