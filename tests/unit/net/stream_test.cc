#include "net/stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>

#include "net/reactor.h"
#include "support/scripted_transport.h"

namespace weir::net {
namespace {

using test::ScriptedTransport;
using test::Wire;

constexpr std::size_t kMiB = std::size_t{1} << 20U;
constexpr std::size_t kTicksOfASecond = 10;

/// Answers the first bytes with "no" and closes, whatever else is sent.
class Refusal final : public Counted, private Stream::Session {
 public:
  Refusal(Reactor& reactor, Wire& wire)
      : transport_(wire), stream_(transport_, *this, reactor, {}) {
    transport_.Attach(*this, stream_);
    stream_.Start();
  }
  void End() { stream_.Close(); }

 private:
  std::span<char> Space() override { return space_; }
  void Received(std::size_t /*size*/) override { output_ = "no"; }
  void EndOfInput() override {}
  Stream::Next Advance() override {
    return output_.empty() ? Stream::Next::kRead : Stream::Next::kClose;
  }
  std::string_view Output() const override { return output_.substr(sent_); }
  void Sent(std::size_t size) override { sent_ += size; }
  Stream::Stage stage() const override { return Stream::Stage::kRequest; }
  bool OnTimeout(Stream::Stage /*stage*/) override { return true; }

  ScriptedTransport transport_;
  std::array<char, 64> space_{};
  std::string_view output_;
  std::size_t sent_ = 0;
  Stream stream_;
};

/// A client that sends this much, as fast as it is accepted, and then ends.
struct Client {
  Wire wire;
  std::size_t to_send = 0;
  std::size_t taken = 0;
  boost::intrusive_ptr<Refusal> refusal;

  void Connect(Reactor& reactor, std::size_t bytes) {
    wire.LetGo();
    wire = Wire();
    wire.room = 100;
    to_send = bytes;
    Send();
    refusal.reset(new Refusal(reactor, wire));
  }

  void Send() {
    const std::size_t size = std::min(to_send, kWindow - std::min(kWindow, wire.arrived.size()));
    wire.arrived.append(size, 'x');
    to_send -= size;
    wire.ended = to_send == 0;
  }

  static constexpr std::size_t kWindow = 64 * 1024;
};

class StreamTest : public ::testing::Test {
 protected:
  ~StreamTest() override {
    for (Client& client : clients_) {
      client.refusal->End();
      client.wire.LetGo();
    }
  }

  Client& Connect(std::size_t bytes) {
    clients_.emplace_back().Connect(reactor_, bytes);
    return clients_.back();
  }

  /// Runs one event that the client's stream waits for. False if there is none.
  bool Turn(Client& client) {
    Wire& wire = client.wire;
    client.Send();
    const std::size_t before = wire.arrived.size();
    bool told = true;
    if (wire.turn) {
      wire.Tell(wire.turn, &Transport::Watcher::OnTurn);
    } else if (wire.spare && reactor_.turns().spare() > 0) {
      wire.Tell(wire.spare, &Transport::Watcher::OnTurn);
    } else if (wire.readable && (!wire.arrived.empty() || wire.ended)) {
      wire.Tell(wire.readable, &Transport::Watcher::OnReadable);
    } else {
      told = false;
    }
    const std::size_t taken = before - wire.arrived.size();
    client.taken += taken;
    most_of_a_turn_ = std::max(most_of_a_turn_, taken);
    return told;
  }

  /// Runs all that can happen before the next tick, clients alternating.
  void Play() {
    for (bool moved = true; moved;) {
      moved = false;
      for (Client& client : clients_) moved = Turn(client) || moved;
    }
  }

  Reactor reactor_{0, 100};
  std::deque<Client> clients_;
  std::size_t most_of_a_turn_ = 0;
};

TEST_F(StreamTest, WhatRefusedClientsStillSendCostsAReactorSoMuchASecond) {
  constexpr std::size_t kSeconds = 3;
  for (int i = 0; i < 4; ++i) Connect(64 * kMiB);
  for (std::size_t tick = 0; tick < kSeconds * kTicksOfASecond; ++tick) {
    Play();
    reactor_.timers().Tick();
    // Closed clients reconnect and are refused again.
    for (Client& client : clients_) {
      if (client.wire.closed) client.Connect(reactor_, 64 * kMiB);
    }
  }
  std::size_t taken = 0;
  for (const Client& client : clients_) taken += client.taken;
  EXPECT_LE(most_of_a_turn_, 32U * 1024);
  EXPECT_LE(taken, (16 + kSeconds * 32) * kMiB + 4096);  // 4 KiB: read before the refusals
  EXPECT_GE(taken, kSeconds * 32 * kMiB);
}

TEST_F(StreamTest, OneRefusedClientMaySendItsWholeBodyAtOnceAndThenReadTheAnswer) {
  Client& client = Connect(8 * kMiB);
  Play();
  EXPECT_EQ(client.wire.taken, "no");
  EXPECT_EQ(client.taken, 8 * kMiB);
  EXPECT_TRUE(client.wire.closed);
}

TEST_F(StreamTest, ClientsThatAreRefusedTogetherShareWhatIsTaken) {
  for (int i = 0; i < 4; ++i) Connect(16 * kMiB);
  Play();
  for (const Client& client : clients_) {
    EXPECT_EQ(client.wire.taken, "no");
    EXPECT_NEAR(static_cast<double>(client.taken), 4.0 * kMiB, 64.0 * 1024);
  }
  reactor_.timers().Tick();
  Play();
  for (const Client& client : clients_) {
    EXPECT_NEAR(static_cast<double>(client.taken), 4.8 * kMiB, 64.0 * 1024);
  }
}

TEST_F(StreamTest, WhoeverStillSendsAfterASecondIsClosed) {
  for (int i = 0; i < 40; ++i) Connect(64 * kMiB);
  for (std::size_t tick = 0; tick <= kTicksOfASecond; ++tick) {
    Play();
    reactor_.timers().Tick();
  }
  for (const Client& client : clients_) EXPECT_TRUE(client.wire.closed);
}

}  // namespace
}  // namespace weir::net
