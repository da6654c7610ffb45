#include <gtest/gtest.h>
#include <netinet/tcp.h>

#include <atomic>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <functional>
#include <future>
#include <string>
#include <vector>

#include "net/listener.h"
#include "net/reactor_pool.h"

namespace weir::net {
namespace {

namespace asio = boost::asio;
using std::chrono::milliseconds;

/// Echoes each byte; closes when draining once something has been echoed.
class EchoConnection final : public Connection {
 public:
  EchoConnection(Reactor& reactor, Socket socket)
      : Connection(reactor), socket_(std::move(socket)) {
    reactor.timers().Set(*this, milliseconds(60'000));
  }
  void Read() {
    socket_.async_read_some(
        asio::buffer(bytes_),
        [self = boost::intrusive_ptr(this)](boost::system::error_code error, std::size_t size) {
          if (error) return;
          asio::write(self->socket_, asio::buffer(self->bytes_, size), error);
          if (!error && !self->reactor().draining()) self->Read();
        });
  }
  void Drain() override {}
  void Abort() override { socket_.close(); }
  void OnDeadline() override { Abort(); }

 private:
  Socket socket_;
  std::array<char, 256> bytes_;
};

class EchoDoor final : public Door {
 public:
  std::string_view name() const noexcept override { return "echo"; }
  void Accept(Reactor& reactor, Socket socket) override {
    boost::intrusive_ptr<EchoConnection>(new EchoConnection(reactor, std::move(socket)))->Read();
  }
};

class Client {
 public:
  explicit Client(const Endpoint& server) : socket_(context_) { socket_.connect(server); }
  Client(const Endpoint& server, const char* from) : socket_(context_) {
    socket_.open(server.protocol());
    socket_.bind({asio::ip::make_address(from), 0});
    socket_.connect(server);
  }
  std::string Ask(const std::string& text) {
    boost::system::error_code error;
    asio::write(socket_, asio::buffer(text), error);
    std::string answer(text.size(), '\0');
    answer.resize(asio::read(socket_, asio::buffer(answer), error));
    return answer;
  }

 private:
  asio::io_context context_;
  asio::ip::tcp::socket socket_;
};

TEST(Endpoint, ReadsTheFormsItWrites) {
  for (const char* text : {"127.0.0.1:8080", "[::1]:0", "0.0.0.0:65535"}) {
    const auto endpoint = ParseEndpoint(text);
    ASSERT_TRUE(endpoint.ok()) << text;
    EXPECT_EQ(FormatEndpoint(*endpoint), text);
  }
  EXPECT_EQ(FormatEndpoint(*ParseEndpoint("localhost:1")), "127.0.0.1:1");
  EXPECT_EQ(FormatEndpoint(*ParseEndpoint(":1")), "0.0.0.0:1");
  for (const char* text : {"", "8080", "1.2.3.4", "1.2.3.4:", "1.2.3.4:65536", "a.b:1", "::1:x"}) {
    EXPECT_FALSE(ParseEndpoint(text).ok()) << text;
  }
}

TEST(ReactorPool, AllReactorsShareTheChosenPort) {
  EchoDoor door;
  ReactorPool pool({.reactors = 3, .max_connections = 100});
  const auto endpoint = pool.Listen(door, "127.0.0.1:0");
  ASSERT_TRUE(endpoint.ok());
  EXPECT_NE(endpoint->port(), 0);
  pool.Start();
  // The kernel spreads 60 connections over 3 sockets by a hash of the ports: the probability that
  // one of them gets none is (2/3)^60 * 3, about 1e-10.
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 60; ++i) {
    clients.push_back(std::make_unique<Client>(*endpoint));
    EXPECT_EQ(clients.back()->Ask("ping"), "ping");
  }
  for (std::size_t i = 0; i < pool.size(); ++i) {
    EXPECT_GT(pool.reactor(i).stats().accepted.load(), 0u) << i;
  }
}

TEST(ReactorPool, ClosesConnectionsBeyondTheLimit) {
  EchoDoor door;
  ReactorPool pool({.reactors = 1, .max_connections = 2});
  const auto endpoint = pool.Listen(door, "127.0.0.1:0");
  ASSERT_TRUE(endpoint.ok());
  pool.Start();
  Client first(*endpoint);
  Client second(*endpoint);
  EXPECT_EQ(first.Ask("a"), "a");
  EXPECT_EQ(second.Ask("a"), "a");
  Client third(*endpoint);
  EXPECT_EQ(third.Ask("a"), "");
  EXPECT_EQ(first.Ask("b"), "b");
}

TEST(ReactorPool, OneClientDoesNotGetTheConnectionsOfOthers) {
  EchoDoor door;
  ClientBound clients{.most = 2, .exempt = {*IpNetwork::Parse("127.0.0.3")}};
  ReactorPool pool({.reactors = 1, .max_connections = 100, .clients = clients});
  const auto endpoint = pool.Listen(door, "127.0.0.1:0");
  ASSERT_TRUE(endpoint.ok());
  pool.Start();
  auto first = std::make_unique<Client>(*endpoint);
  Client second(*endpoint);
  EXPECT_EQ(first->Ask("a"), "a");
  EXPECT_EQ(second.Ask("a"), "a");
  EXPECT_EQ(Client(*endpoint).Ask("a"), "");
  EXPECT_EQ(Client(*endpoint, "127.0.0.2").Ask("a"), "a");
  std::vector<std::unique_ptr<Client>> proxy;
  for (int i = 0; i < 5; ++i) proxy.push_back(std::make_unique<Client>(*endpoint, "127.0.0.3"));
  for (const auto& one : proxy) EXPECT_EQ(one->Ask("a"), "a");
  first.reset();
  // The reactor is notified of the end some time after this.
  bool taken = false;
  for (int i = 0; i < 1000 && !taken; ++i) taken = Client(*endpoint).Ask("a") == "a";
  EXPECT_TRUE(taken);
}

/// Records whether its sockets detect that their peer has vanished.
class KeepAliveDoor final : public Door {
 public:
  std::string_view name() const noexcept override { return "keepalive"; }
  void Accept(Reactor&, Socket socket) override {
    boost::asio::socket_base::keep_alive option;
    socket.get_option(option);
    int idle = 0;
    socklen_t size = sizeof idle;
    getsockopt(socket.native_handle(), IPPROTO_TCP, TCP_KEEPIDLE, &idle, &size);
    idle_ = option.value() ? idle : -1;
  }
  int idle() const { return idle_; }

 private:
  std::atomic<int> idle_ = 0;
};

TEST(ReactorPool, APeerThatVanishesIsNoticed) {
  KeepAliveDoor door;
  ReactorPool pool({.reactors = 1, .max_connections = 10});
  const auto endpoint = pool.Listen(door, "127.0.0.1:0");
  ASSERT_TRUE(endpoint.ok());
  pool.Start();
  Client client(*endpoint);
  EXPECT_EQ(client.Ask("a"), "");  // closed by the door
  EXPECT_EQ(door.idle(), 60);
}

/// Counts, and records how many had arrived when a handler queued behind the first one ran.
class CountingDoor final : public Door {
 public:
  std::string_view name() const noexcept override { return "counting"; }
  void Accept(Reactor& reactor, Socket socket) override {
    if (accepted_++ == 0) {
      asio::post(reactor.context(), [this] { before_turn_ = accepted_.load(); });
    }
    boost::intrusive_ptr<EchoConnection>(new EchoConnection(reactor, std::move(socket)))->Read();
  }
  int before_turn() const noexcept { return before_turn_; }

 private:
  std::atomic<int> accepted_ = 0;
  std::atomic<int> before_turn_ = 0;
};

TEST(ReactorPool, ManyNewConnectionsDoNotKeepTheOthersWaiting) {
  CountingDoor door;
  ReactorPool pool({.reactors = 1, .max_connections = 1000});
  const auto endpoint = pool.Listen(door, "127.0.0.1:0");
  ASSERT_TRUE(endpoint.ok());
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 200; ++i) clients.push_back(std::make_unique<Client>(*endpoint));
  pool.Start();
  for (const auto& client : clients) EXPECT_EQ(client->Ask("ping"), "ping");
  EXPECT_GT(door.before_turn(), 0);
  EXPECT_LE(door.before_turn(), 8);
}

class Deadline final : public TimerWheel::Entry {
 public:
  void OnDeadline() override { passed(); }
  std::function<void()> passed;
};

TEST(ReactorPool, ManyDeadlinesAtOnceDoNotKeepTheOthersWaiting) {
  constexpr std::size_t kMany = 1000;
  std::vector<Deadline> deadlines(kMany);
  ReactorPool pool({.reactors = 1, .max_connections = 10});
  std::size_t passed = 0;
  std::size_t passed_before_turn = 0;
  std::promise<void> all;
  asio::io_context& context = pool.reactor(0).context();
  for (Deadline& deadline : deadlines) {
    deadline.passed = [&] {
      // Queued along with the first of them.
      if (++passed == 1) asio::post(context, [&] { passed_before_turn = passed; });
      if (passed == kMany) all.set_value();
    };
    pool.reactor(0).timers().Set(deadline, milliseconds(0));
  }
  pool.Start();
  all.get_future().wait();
  pool.Stop();
  EXPECT_GT(passed_before_turn, 0U);
  EXPECT_LT(passed_before_turn, 50U);
}

TEST(ReactorPool, DrainServesConnectionsThatWereNotYetAccepted) {
  EchoDoor door;
  ReactorPool pool({.reactors = 2, .max_connections = 100});
  const auto endpoint = pool.Listen(door, "127.0.0.1:0");
  ASSERT_TRUE(endpoint.ok());
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 20; ++i) clients.push_back(std::make_unique<Client>(*endpoint));
  pool.Start();
  bool drained = false;
  std::thread drainer([&] { drained = pool.Drain(milliseconds(10'000)); });
  for (const auto& client : clients) EXPECT_EQ(client->Ask("ping"), "ping");
  clients.clear();
  drainer.join();
  EXPECT_TRUE(drained);
  asio::io_context context;
  asio::ip::tcp::socket late(context);
  boost::system::error_code error;
  late.connect(*endpoint, error);
  EXPECT_EQ(error, asio::error::connection_refused);
}

TEST(ReactorPool, DrainCutsOffWhoeverOutstaysItsPatience) {
  EchoDoor door;
  ReactorPool pool({.reactors = 1, .max_connections = 100});
  const auto endpoint = pool.Listen(door, "127.0.0.1:0");
  ASSERT_TRUE(endpoint.ok());
  pool.Start();
  Client silent(*endpoint);
  EXPECT_EQ(silent.Ask("a"), "a");
  EXPECT_FALSE(pool.Drain(milliseconds(300)));
  EXPECT_EQ(silent.Ask("a"), "");
}

TEST(ReactorPool, DrainWaitsForWorkThatConnectionsLeaveBehind) {
  EchoDoor door;
  ReactorPool pool({.reactors = 1, .max_connections = 100});
  ASSERT_TRUE(pool.Listen(door, "127.0.0.1:0").ok());
  std::atomic<bool> busy{true};
  std::atomic<int> asked{0};
  pool.reactor(0).AwaitInDrain([&] {
    ++asked;
    return busy.load();
  });
  pool.Start();
  std::atomic<bool> over{false};
  bool drained = false;
  std::thread drainer([&] {
    drained = pool.Drain(milliseconds(30'000));
    over = true;
  });
  while (asked < 3) std::this_thread::yield();
  EXPECT_FALSE(over);
  busy = false;
  drainer.join();
  EXPECT_TRUE(drained);
}

TEST(ReactorPool, WorkWithoutEndDoesNotHoldUpADrainForLong) {
  EchoDoor door;
  ReactorPool pool({.reactors = 1, .max_connections = 100});
  ASSERT_TRUE(pool.Listen(door, "127.0.0.1:0").ok());
  pool.reactor(0).AwaitInDrain([] { return true; });
  pool.Start();
  EXPECT_FALSE(pool.Drain(milliseconds(100)));
}

TEST(ReactorPool, SaysWhichAddressIsTaken) {
  EchoDoor door;
  ReactorPool pool({.reactors = 1, .max_connections = 1});
  asio::io_context context;
  asio::ip::tcp::acceptor taken(context, Endpoint(asio::ip::make_address("127.0.0.1"), 0));
  const std::string address = FormatEndpoint(taken.local_endpoint());
  const auto endpoint = pool.Listen(door, address);
  ASSERT_FALSE(endpoint.ok());
  EXPECT_NE(endpoint.error().message.find(address), std::string::npos) << endpoint.error().message;
}

TEST(ReactorPool, NobodyElseGetsItsPort) {
  EchoDoor door;
  std::string address;
  {
    ReactorPool pool({.reactors = 2, .max_connections = 10});
    const auto endpoint = pool.Listen(door, "127.0.0.1:0");
    ASSERT_TRUE(endpoint.ok());
    address = FormatEndpoint(*endpoint);
    pool.Start();
    Client client(*endpoint);
    EXPECT_EQ(client.Ask("a"), "a");
    // Like a second `weir serve`: if the port were shared, it would get every other connection.
    ReactorPool second({.reactors = 2, .max_connections = 10});
    const auto taken = second.Listen(door, address);
    ASSERT_FALSE(taken.ok());
    EXPECT_EQ(
        taken.error().message,
        "echo: cannot bind " + address +
            ": Address already in use; stop the program that listens there, or use another port");
  }
  // A closed connection that the kernel still remembers does not block the port.
  ReactorPool next({.reactors = 2, .max_connections = 10});
  EXPECT_TRUE(next.Listen(door, address).ok());
}

}  // namespace
}  // namespace weir::net
