#include "net/turns.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <memory>
#include <vector>

#include "net/edge_socket.h"
#include "net/reactor.h"

namespace weir::net {
namespace {

using boost::asio::ip::tcp;

/// A connection that uses every turn it gets and immediately wants the next one.
class Greedy final : public Connection, private EdgeSocket::Watcher {
 public:
  Greedy(Reactor& reactor, Socket socket_of_it, int& turns)
      : Connection(reactor), socket(std::move(socket_of_it), reactor), turns_(turns) {
    socket.Attach(*this, *this);
  }

  void Drain() override {}
  void Abort() override { socket.Close(); }
  void OnDeadline() override {}

  EdgeSocket socket;
  bool readable = false;

 private:
  void OnReadable() override { readable = true; }
  void OnWritable() override {}
  void OnTurn() override {
    ++turns_;
    socket.AwaitTurn();
  }
  int& turns_;
};

class TurnsTest : public testing::Test {
 protected:
  using Ptr = boost::intrusive_ptr<Greedy>;

  /// A connection whose other end is the last of peers_.
  Ptr Connect() {
    peers_.emplace_back(others_).connect(
        {boost::asio::ip::address_v4::loopback(), acceptor_.local_endpoint().port()});
    Socket accepted(reactor_.context());
    acceptor_.accept(accepted);
    return Ptr(new Greedy(reactor_, std::move(accepted), turns_));
  }

  void RunOne() {
    reactor_.context().restart();
    reactor_.context().run_one();
  }

  boost::asio::io_context others_;
  tcp::acceptor acceptor_{others_, tcp::endpoint(tcp::v4(), 0)};
  std::vector<tcp::socket> peers_;
  Reactor reactor_{0, 100};
  int turns_ = 0;
};

TEST_F(TurnsTest, WhoAsksLittleWaitsForOneOfManyWhoAskMuch) {
  const Ptr modest = Connect();
  // A socket reports its first edge even if nothing has arrived yet.
  modest->socket.AwaitReadable();
  while (!modest->readable) RunOne();
  modest->readable = false;
  modest->socket.AwaitReadable();
  std::vector<Ptr> greedy;
  for (int i = 0; i < 50; ++i) greedy.push_back(Connect());
  for (const Ptr& one : greedy) one->socket.AwaitTurn();
  while (turns_ < 100) RunOne();
  turns_ = 0;
  boost::asio::write(peers_.front(), boost::asio::buffer("?", 1));
  while (!modest->readable && turns_ < 1000) RunOne();
  EXPECT_TRUE(modest->readable);
  // One that was about to run, and one between the event and its connection.
  EXPECT_LE(turns_, 2);
}

TEST_F(TurnsTest, WhoeverWaitsForSomethingToSpareHasItsTurnWithTheTickThatBringsIt) {
  const std::vector<Ptr> greedy{Connect(), Connect()};
  reactor_.turns().Spend(Turns::kMostSpare);
  for (const Ptr& one : greedy) one->socket.AwaitSpare();
  reactor_.context().poll();
  EXPECT_EQ(turns_, 0);
  EXPECT_EQ(reactor_.turns().spare(), 0U);
  reactor_.timers().Tick();
  EXPECT_EQ(reactor_.turns().spare(), Turns::kSparePerTick);
  while (turns_ < 20) RunOne();  // both continue, one turn at a time
  greedy[0]->Abort();
  reactor_.context().restart();
  for (int tick = 0; tick < 100; ++tick) reactor_.timers().Tick();
  EXPECT_EQ(reactor_.turns().spare(), Turns::kMostSpare);
}

TEST_F(TurnsTest, WhoeverWaitsForSomethingToSpareMayBeClosedMeanwhile) {
  Ptr one = Connect();
  reactor_.turns().Spend(Turns::kMostSpare);
  one->socket.AwaitSpare();
  one->Abort();
  one.reset();
  EXPECT_EQ(reactor_.stats().open.load(), 1U);
  reactor_.timers().Tick();
  while (reactor_.stats().open.load() > 0) RunOne();
  EXPECT_EQ(turns_, 0);
}

TEST_F(TurnsTest, EachOfThoseWhoAskMuchHasItsTurn) {
  std::vector<int> turns(3, 0);
  std::vector<Ptr> greedy;
  for (int& count : turns) {
    peers_.emplace_back(others_).connect(
        {boost::asio::ip::address_v4::loopback(), acceptor_.local_endpoint().port()});
    Socket accepted(reactor_.context());
    acceptor_.accept(accepted);
    greedy.emplace_back(new Greedy(reactor_, std::move(accepted), count));
    greedy.back()->socket.AwaitTurn();
  }
  while (turns[0] < 10) RunOne();
  EXPECT_EQ(turns, (std::vector<int>{10, 9, 9}));
  greedy[1]->Abort();  // while it waits: the others continue
  while (turns[0] < 20) RunOne();
  EXPECT_EQ(turns[1], 9);
  EXPECT_EQ(turns[2], 19);
}

}  // namespace
}  // namespace weir::net
