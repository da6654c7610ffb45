#include "net/tls_transport.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "support/certificates.h"
#include "support/scripted_transport.h"

namespace weir::net {
namespace {

using test::ScriptedTransport;
using test::Wire;
using Random = std::minstd_rand;

/// One side of a connection: sends its text in pieces, then ends, and records what it receives.
class End final : public Counted, private Transport::Watcher {
 public:
  End(Wire& wire, std::unique_ptr<TlsSession> tls, std::string text, Random& random)
      : transport_(std::make_unique<ScriptedTransport>(wire), std::move(tls)),
        text_(std::move(text)),
        random_(random) {
    transport_.Attach(*this, *this);
    transport_.AwaitReadable();
    transport_.AwaitWritable();
  }

  const std::string& heard() const { return heard_; }
  bool over() const { return over_ && said_ == text_.size() && transport_.flushed(); }
  bool broken() const { return broken_; }
  TlsTransport& transport() { return transport_; }

 private:
  void OnReadable() override {
    std::string space(1 + random_() % 40'000, '\0');
    const Transport::Received received = transport_.Receive(space);
    heard_.append(space, 0, received.size);
    over_ = over_ || received.outcome == Transport::Outcome::kEnd;
    broken_ = broken_ || received.outcome == Transport::Outcome::kBroken;
    if (over_ || broken_) return;
    transport_.AwaitReadable();
    if (!transport_.ready() || said_ > 0) return;
    Say();
  }

  void OnWritable() override { Say(); }

  void Say() {
    if (!transport_.ready() || shut_down_) return;
    if (said_ == text_.size()) {
      shut_down_ = transport_.ShutDownSend();
      return;
    }
    const std::string_view rest = std::string_view(text_).substr(said_);
    const std::string_view first = rest.substr(0, random_() % 30'000);
    const std::string_view second = rest.substr(first.size(), random_() % 30'000);
    const std::ptrdiff_t sent = transport_.Send(first, second);
    ASSERT_GE(sent, 0);
    said_ += static_cast<std::size_t>(sent);
    transport_.AwaitWritable();
  }

  TlsTransport transport_;
  const std::string text_;
  Random& random_;
  std::string heard_;
  std::size_t said_ = 0;
  bool over_ = false;
  bool broken_ = false;
  bool shut_down_ = false;
};

/// One side of a connection that sends nothing by itself.
class Silent final : public Counted, private Transport::Watcher {
 public:
  Silent(Wire& wire, std::unique_ptr<TlsSession> tls)
      : transport_(std::make_unique<ScriptedTransport>(wire), std::move(tls)) {
    transport_.Attach(*this, *this);
    transport_.AwaitReadable();
  }

  TlsTransport& transport() { return transport_; }

 private:
  void OnReadable() override {
    std::array<char, 4096> space;
    (void)transport_.Receive(space);
    transport_.AwaitReadable();
  }
  void OnWritable() override {}

  TlsTransport transport_;
};

/// Moves some of what one side has sent to the other.
void Carry(Wire& from, Wire& to, Random& random) {
  from.room = std::min<std::size_t>(from.room + random() % 9'000, 60'000);
  const std::size_t size = std::min<std::size_t>(from.taken.size(), random() % 9'000);
  to.arrived.append(from.taken, 0, size);
  from.taken.erase(0, size);
  to.ended = to.ended || ((from.shut_down || from.closed) && from.taken.empty());
}

std::string Text(Random& random) {
  std::string text(random() % 300'000, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

class TlsTransportTest : public testing::Test {
 protected:
  std::unique_ptr<TlsSession> ServerSession(const test::Certificates::Pair& pair) {
    auto context = TlsContext::Load({pair.certificate, pair.key, {}}, {});
    EXPECT_TRUE(context.ok());
    return std::move(*(*context)->NewSession());
  }
  std::unique_ptr<TlsSession> ClientSession() {
    auto context = TlsClientContext::Load({certificates_.authority(), {}, {}});
    EXPECT_TRUE(context.ok());
    return std::move(*(*context)->NewSession("localhost"));
  }

  test::Certificates certificates_;
};

TEST_F(TlsTransportTest, BytesArriveWholeAndInOrderHoweverTheyAreCarried) {
  const auto pair = certificates_.Issue("localhost", "server");
  for (unsigned seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const std::string asked = Text(random);
    const std::string answered = Text(random);
    Wire up;
    Wire down;
    const boost::intrusive_ptr<End> client(new End(up, ClientSession(), asked, random));
    const boost::intrusive_ptr<End> server(new End(down, ServerSession(pair), answered, random));
    for (int step = 0; step < 100'000 && !(client->over() && server->over()); ++step) {
      Carry(up, down, random);
      Carry(down, up, random);
      up.Tell(random);
      down.Tell(random);
    }
    EXPECT_TRUE(client->over() && server->over());
    EXPECT_EQ(server->heard(), asked);
    EXPECT_EQ(client->heard(), answered);
    EXPECT_TRUE(client->transport().secure());
    up.LetGo();
    down.LetGo();
  }
}

TEST_F(TlsTransportTest, LittleIsEncryptedForAPeerThatTakesNothing) {
  const auto pair = certificates_.Issue("localhost", "server");
  Random random(5);
  Wire up;
  Wire down;
  const boost::intrusive_ptr<Silent> client(new Silent(up, ClientSession()));
  const boost::intrusive_ptr<Silent> server(new Silent(down, ServerSession(pair)));
  TlsTransport& transport = server->transport();
  while (!transport.ready() || !transport.flushed()) {
    Carry(up, down, random);
    Carry(down, up, random);
    up.Tell(random);
    down.Tell(random);
  }
  // Bytes not yet sent stay in the session, where they count against its memory bound.
  constexpr std::size_t kMost = std::size_t{64} << 10U;
  const std::string answers(std::size_t{1} << 20U, 'a');
  down.room = 0;
  const std::ptrdiff_t taken = transport.Send(answers);
  EXPECT_GT(taken, 0);
  EXPECT_LE(taken, static_cast<std::ptrdiff_t>(kMost));
  EXPECT_EQ(transport.Send(answers), 0);
  // All of it is sent immediately to a peer that reads it.
  down.room = 4 * answers.size();
  EXPECT_EQ(transport.Send(answers, answers), static_cast<std::ptrdiff_t>(2 * answers.size()));
  up.LetGo();
  down.LetGo();
}

TEST_F(TlsTransportTest, AnEndThatTheServerDidNotSayIsNoEnd) {
  const auto pair = certificates_.Issue("localhost", "server");
  Random random(7);
  Wire up;
  Wire down;
  const boost::intrusive_ptr<End> client(new End(up, ClientSession(), "hello", random));
  const boost::intrusive_ptr<End> server(
      new End(down, ServerSession(pair), std::string(500'000, 'x'), random));
  while (client->heard().empty()) {
    Carry(up, down, random);
    Carry(down, up, random);
    up.Tell(random);
    down.Tell(random);
  }
  up.arrived.clear();
  up.ended = true;
  for (int step = 0; step < 1'000 && !client->broken(); ++step) up.Tell(random);
  EXPECT_TRUE(client->broken());
  EXPECT_FALSE(client->over());
  up.LetGo();
  down.LetGo();
}

TEST_F(TlsTransportTest, WhyAHandshakeFailedIsSaid) {
  const auto pair = certificates_.SelfSigned("localhost", "stranger");
  Random random(3);
  Wire up;
  Wire down;
  const boost::intrusive_ptr<End> client(new End(up, ClientSession(), "hello", random));
  const boost::intrusive_ptr<End> server(new End(down, ServerSession(pair), "hi", random));
  for (int step = 0; step < 10'000 && !client->broken(); ++step) {
    Carry(up, down, random);
    Carry(down, up, random);
    up.Tell(random);
    down.Tell(random);
  }
  EXPECT_NE(client->transport().failure().find("certificate verify failed"), std::string::npos);
  EXPECT_FALSE(client->transport().ready());
  EXPECT_EQ(server->heard(), "");
  up.LetGo();
  down.LetGo();
}

}  // namespace
}  // namespace weir::net
