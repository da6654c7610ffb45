#pragma once

#include <algorithm>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <cstddef>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "net/connection.h"
#include "net/transport.h"

namespace weir::test {

/// The two ends of a connection that exists only in a test. The test drives it: bytes arrive in any
/// pieces, and the peer takes as much as the test allows. Not thread-safe.
struct Wire {
  std::string arrived;   ///< can be received now
  bool ended = false;    ///< the peer has ended its side
  std::size_t room = 0;  ///< this much can be sent now
  std::string taken;     ///< what the peer has received
  bool shut_down = false;
  bool closed = false;
  bool blocked = false;          ///< the last Send was not taken completely
  std::size_t broken_rules = 0;  ///< reads while older bytes are pending, sends after the end

  net::Transport::Watcher* watcher = nullptr;
  boost::intrusive_ptr<net::Counted> readable;
  boost::intrusive_ptr<net::Counted> writable;
  boost::intrusive_ptr<net::Counted> turn;
  boost::intrusive_ptr<net::Counted> spare;

  /// Notifies one waiter whose event has occurred, or may have. False if there is none.
  template <typename Random>
  bool Tell(Random& random) {
    std::vector<int> ready;
    if (readable && (!arrived.empty() || ended || random() % 16 == 0)) ready.push_back(0);
    if (writable && room > 0) ready.push_back(1);
    if (turn) ready.push_back(2);
    if (spare) ready.push_back(3);
    if (ready.empty()) return false;
    switch (ready[random() % ready.size()]) {
      case 0:
        return Tell(readable, &net::Transport::Watcher::OnReadable);
      case 1:
        blocked = false;
        return Tell(writable, &net::Transport::Watcher::OnWritable);
      case 2:
        return Tell(turn, &net::Transport::Watcher::OnTurn);
      default:
        return Tell(spare, &net::Transport::Watcher::OnTurn);
    }
  }

  bool Tell(boost::intrusive_ptr<net::Counted>& who, void (net::Transport::Watcher::*what)()) {
    const boost::intrusive_ptr<net::Counted> alive = std::move(who);
    if (!closed) (watcher->*what)();
    return true;
  }

  void LetGo() {
    readable.reset();
    writable.reset();
    turn.reset();
    spare.reset();
  }
};

/// A connection's end of a Wire.
class ScriptedTransport final : public net::Transport {
 public:
  explicit ScriptedTransport(Wire& wire) : wire_(wire) {}

  void Attach(net::Counted& owner, Watcher& watcher) noexcept override {
    owner_ = &owner;
    wire_.watcher = &watcher;
  }
  bool is_open() const noexcept override { return !wire_.closed; }
  bool more() const noexcept override { return !wire_.arrived.empty() || wire_.ended; }

  Received Receive(std::span<char> space) noexcept override {
    if (wire_.blocked) ++wire_.broken_rules;
    if (wire_.arrived.empty()) return {wire_.ended ? Outcome::kEnd : Outcome::kNothing};
    const std::size_t size = std::min(space.size(), wire_.arrived.size());
    std::copy_n(wire_.arrived.begin(), size, space.begin());
    wire_.arrived.erase(0, size);
    return {Outcome::kBytes, size};
  }

  using Transport::Send;
  std::ptrdiff_t Send(std::string_view first, std::string_view rest) noexcept override {
    const std::string bytes = std::string(first) + std::string(rest);
    if (wire_.shut_down || wire_.blocked) ++wire_.broken_rules;
    const std::size_t size = std::min(bytes.size(), wire_.room);
    wire_.room -= size;
    wire_.taken.append(bytes, 0, size);
    wire_.blocked = size < bytes.size();
    return static_cast<std::ptrdiff_t>(size);
  }

  void AwaitReadable() override { wire_.readable.reset(owner_); }
  void AwaitWritable() override { wire_.writable.reset(owner_); }
  void AwaitTurn() override { wire_.turn.reset(owner_); }
  void AwaitSpare() override { wire_.spare.reset(owner_); }
  bool ShutDownSend() noexcept override { return wire_.shut_down = true; }
  void Close() noexcept override { wire_.closed = true; }

 private:
  Wire& wire_;
  net::Counted* owner_ = nullptr;
};

}  // namespace weir::test
