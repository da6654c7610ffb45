#include "net/edge_socket.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <functional>
#include <string>

#include "net/reactor.h"

namespace weir::net {
namespace {

using boost::asio::ip::tcp;

/// A connection that counts its notifications.
class Told final : public Connection, private EdgeSocket::Watcher {
 public:
  Told(Reactor& reactor, Socket socket_of_it, bool& gone)
      : Connection(reactor), socket(std::move(socket_of_it), reactor), gone_(gone) {
    socket.Attach(*this, *this);
  }
  ~Told() override { gone_ = true; }

  void Drain() override {}
  void Abort() override { socket.Close(); }
  void OnDeadline() override {}

  std::string Receive() {
    std::string bytes(64, '\0');
    const EdgeSocket::Received received = socket.Receive(bytes);
    outcome = received.outcome;
    bytes.resize(received.size);
    return bytes;
  }

  EdgeSocket socket;
  EdgeSocket::Outcome outcome = EdgeSocket::Outcome::kNothing;
  int readable = 0;
  int writable = 0;

 private:
  void OnReadable() override { ++readable; }
  void OnWritable() override { ++writable; }
  bool& gone_;
};

class EdgeSocketTest : public testing::Test {
 protected:
  EdgeSocketTest() {
    tcp::acceptor acceptor(peers_, tcp::endpoint(tcp::v4(), 0));
    peer.connect({boost::asio::ip::address_v4::loopback(), acceptor.local_endpoint().port()});
    Socket accepted(reactor.context());
    acceptor.accept(accepted);
    told.reset(new Told(reactor, std::move(accepted), gone));
  }

  void Write(std::string_view bytes) { boost::asio::write(peer, boost::asio::buffer(bytes)); }

  /// Runs pending handlers until `done` holds. False if that takes too long.
  bool Until(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (!done() && std::chrono::steady_clock::now() < deadline) {
      reactor.context().restart();
      reactor.context().run_one_for(std::chrono::milliseconds(10));
    }
    return done();
  }

  /// A socket reports its first edge even if nothing has arrived yet.
  void SkipFirstEdge() {
    told->socket.AwaitReadable();
    ASSERT_TRUE(Until([this] { return told->readable == 1; }));
    EXPECT_EQ(told->Receive(), "");
    EXPECT_EQ(told->outcome, EdgeSocket::Outcome::kNothing);
  }

  Reactor reactor{0, 10};
  boost::asio::io_context peers_;
  tcp::socket peer{peers_};
  bool gone = false;
  boost::intrusive_ptr<Told> told;
};

TEST_F(EdgeSocketTest, TellsOfBytesAndThatNoMoreWait) {
  SkipFirstEdge();
  told->socket.AwaitReadable();
  Write("check");
  ASSERT_TRUE(Until([this] { return told->readable == 2; }));
  EXPECT_EQ(told->Receive(), "check");
  EXPECT_FALSE(told->socket.more());
}

TEST_F(EdgeSocketTest, TellsAgainOfWhatDidNotFit) {
  SkipFirstEdge();
  told->socket.AwaitReadable();
  Write(std::string(100, 'x'));
  ASSERT_TRUE(Until([this] { return told->readable == 2; }));
  EXPECT_EQ(told->Receive(), std::string(64, 'x'));
  EXPECT_TRUE(told->socket.more());
  told->socket.AwaitReadable();
  EXPECT_EQ(told->readable, 2) << "told from within the call";
  ASSERT_TRUE(Until([this] { return told->readable == 3; }));
  EXPECT_EQ(told->Receive(), std::string(36, 'x'));  // 100 - 64
  EXPECT_FALSE(told->socket.more());
}

TEST_F(EdgeSocketTest, LosesNoEndThatCameWithTheLastBytes) {
  SkipFirstEdge();
  Write("bye");
  peer.close();
  told->socket.AwaitReadable();
  ASSERT_TRUE(Until([this] { return told->readable == 2; }));
  // Both are in the kernel now: loopback delivers within the calls above.
  EXPECT_EQ(told->Receive(), "bye");
  EXPECT_TRUE(told->socket.more());
  EXPECT_EQ(told->Receive(), "");
  EXPECT_EQ(told->outcome, EdgeSocket::Outcome::kEnd);
}

TEST_F(EdgeSocketTest, LosesNoResetThatCameWithTheLastBytes) {
  SkipFirstEdge();
  Write("bye");
  peer.set_option(boost::asio::socket_base::linger(true, 0));
  peer.close();
  told->socket.AwaitReadable();
  ASSERT_TRUE(Until([this] { return told->readable == 2; }));
  EXPECT_EQ(told->Receive(), "bye");
  told->socket.AwaitReadable();
  ASSERT_TRUE(Until([this] { return told->readable == 3; })) << "told of nothing";
  EXPECT_EQ(told->Receive(), "");
  EXPECT_EQ(told->outcome, EdgeSocket::Outcome::kBroken);
}

TEST_F(EdgeSocketTest, LooksOnceWhereAnAnswerWasSent) {
  SkipFirstEdge();
  told->socket.AwaitReadable();
  Write("check");
  ASSERT_TRUE(Until([this] { return told->readable == 2; }));
  EXPECT_EQ(told->Receive(), "check");
  EXPECT_EQ(told->socket.Send("allowed"), 7);
  told->socket.AwaitReadable();
  reactor.context().restart();
  reactor.context().poll();
  EXPECT_EQ(told->readable, 2);
}

TEST_F(EdgeSocketTest, TellsWhenThePeerTakesBytesAgain) {
  const std::string block(std::size_t{1} << 20U, 'x');
  std::size_t sent = 0;
  for (std::ptrdiff_t size = 1; size > 0; sent += static_cast<std::size_t>(size)) {
    size = told->socket.Send(block);
    ASSERT_GE(size, 0);
  }
  // One spurious notification, as with reading; then only when there is room.
  told->socket.AwaitWritable();
  ASSERT_TRUE(Until([this] { return told->writable == 1; }));
  EXPECT_EQ(told->socket.Send(block), 0);
  told->socket.AwaitWritable();
  std::string taken(sent, '\0');
  boost::asio::read(peer, boost::asio::buffer(taken));
  ASSERT_TRUE(Until([this] { return told->writable == 2; }));
  EXPECT_GT(told->socket.Send(block), 0);
}

TEST_F(EdgeSocketTest, ClosingLetsTheWaitingConnectionGo) {
  SkipFirstEdge();
  told->socket.AwaitReadable();
  Told* const raw = told.get();
  told.reset();
  EXPECT_FALSE(gone) << "what waits keeps it alive";
  raw->Abort();
  EXPECT_TRUE(Until([this] { return gone; }));
}

TEST_F(EdgeSocketTest, SaysThatAConnectionIsBroken) {
  peer.set_option(boost::asio::socket_base::linger(true, 0));
  peer.close();  // resets
  told->socket.AwaitReadable();
  ASSERT_TRUE(Until([this] { return told->readable == 1; }));
  EXPECT_EQ(told->Receive(), "");
  EXPECT_EQ(told->outcome, EdgeSocket::Outcome::kBroken);
}

}  // namespace
}  // namespace weir::net
