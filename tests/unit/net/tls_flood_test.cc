// What a TLS client can cost before and after the handshake, however little it sends.

#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <array>
#include <memory>
#include <string>
#include <utility>

#include "net/hello_scanner.h"
#include "net/tls.h"
#include "net/tls_transport.h"
#include "support/certificates.h"
#include "support/scripted_transport.h"

namespace weir::net {
namespace {

using test::Wire;

/// A client that behaves in ways that ours never would.
class Client {
 public:
  Client() : context_(SSL_CTX_new(TLS_client_method())), ssl_(SSL_new(context_.get())) {
    SSL_set_bio(ssl_.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_connect_state(ssl_.get());
  }

  SSL* ssl() { return ssl_.get(); }
  void ShakeHands() { (void)SSL_do_handshake(ssl_.get()); }
  void ChooseKeys() {
    ASSERT_EQ(SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED), 1);
    ShakeHands();
  }
  void Say(std::string_view text) {
    (void)SSL_write(ssl_.get(), text.data(), static_cast<int>(text.size()));
  }
  void Hear(std::string_view bytes) {
    (void)BIO_write(SSL_get_rbio(ssl_.get()), bytes.data(), static_cast<int>(bytes.size()));
  }
  std::string Sent() {
    std::string bytes(BIO_pending(SSL_get_wbio(ssl_.get())), '\0');
    (void)BIO_read(SSL_get_wbio(ssl_.get()), bytes.data(), static_cast<int>(bytes.size()));
    return bytes;
  }

 private:
  struct Free {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };
  std::unique_ptr<SSL_CTX, Free> context_;
  std::unique_ptr<SSL, Free> ssl_;
};

std::string Drained(TlsSession& session) {
  std::string all;
  std::array<char, 4096> piece;
  while (const std::size_t size = session.Drain(piece)) all.append(piece.data(), size);
  return all;
}

std::string Heard(TlsSession& session) {
  std::string text(100, '\0');
  const Result<std::size_t> size = session.Read(text);
  text.resize(size.ok() ? *size : 0);
  return text;
}

class TlsFlood : public testing::Test {
 protected:
  TlsFlood() {
    const auto pair = certificates_.Issue("localhost", "server");
    context_ = *TlsContext::Load({pair.certificate, pair.key, {}}, {});
    server_ = std::move(*context_->NewSession());
  }

  void Connect() {
    while (!server_->established()) {
      client_.ShakeHands();
      ASSERT_TRUE(server_->Feed(client_.Sent()).ok());
      client_.Hear(Drained(*server_));
    }
  }

  test::Certificates certificates_;
  std::shared_ptr<TlsContext> context_;
  std::unique_ptr<TlsSession> server_;
  Client client_;
};

TEST_F(TlsFlood, NewKeysNowAndThenAreTaken) {
  Connect();
  for (int i = 0; i < 10; ++i) client_.ChooseKeys();
  client_.Say("hello");
  ASSERT_TRUE(server_->Feed(client_.Sent()).ok());
  EXPECT_EQ(Heard(*server_), "hello");
}

TEST_F(TlsFlood, ManyNewKeysEndTheConnection) {
  Connect();
  for (int i = 0; i < 600; ++i) client_.ChooseKeys();
  client_.Say("hello");
  ASSERT_TRUE(server_->Feed(client_.Sent()).ok());
  std::array<char, 100> space;
  EXPECT_FALSE(server_->Read(space).ok());
}

// What the server kept of one would stay for minutes, of each of 20,000 clients.
TEST_F(TlsFlood, SessionsAreKeptByClientsAlone) {
  for (const bool ticket : {true, false}) {
    SCOPED_TRACE(ticket ? "with a ticket" : "without a ticket");
    std::unique_ptr<SSL_SESSION, decltype(&SSL_SESSION_free)> session(nullptr, SSL_SESSION_free);
    bool resumed = false;
    for (int i = 0; i < 2; ++i) {
      client_ = Client();
      server_ = std::move(*context_->NewSession());
      SSL_set_max_proto_version(client_.ssl(), TLS1_2_VERSION);
      if (!ticket) SSL_set_options(client_.ssl(), SSL_OP_NO_TICKET);
      if (session != nullptr) SSL_set_session(client_.ssl(), session.get());
      Connect();
      client_.ShakeHands();
      resumed = SSL_session_reused(client_.ssl()) == 1;
      session.reset(SSL_get1_session(client_.ssl()));
      SSL_shutdown(client_.ssl());
      server_->Close();
    }
    EXPECT_EQ(resumed, ticket);
  }
}

/// The first bytes of a hello with its true length, in records of `size`.
std::string Hello(std::size_t length, std::size_t size) {
  std::string message = {'\x01', static_cast<char>(length >> 16U), static_cast<char>(length >> 8U),
                         static_cast<char>(length)};
  message.append(100, 'x');
  std::string bytes;
  for (std::size_t at = 0; at < message.size(); at += size) {
    const std::string piece = message.substr(at, size);
    bytes += {'\x16', '\x03', '\x01', '\0', static_cast<char>(piece.size())};
    bytes += piece;
  }
  return bytes;
}

TEST_F(TlsFlood, AHelloThatIsTooLongIsRefusedWhenItSaysSo) {
  for (const std::size_t size : {1, 3, 104}) {
    SCOPED_TRACE(size);
    HelloScanner scanner;
    EXPECT_TRUE(scanner.Take(Hello(HelloScanner::kMost, size)));
    EXPECT_FALSE(HelloScanner().Take(Hello(HelloScanner::kMost + 1, size)));
    HelloScanner slowly;
    bool fits = true;
    for (const char byte : Hello(131'000, size)) fits = fits && slowly.Take({&byte, 1});
    EXPECT_FALSE(fits);
  }
  EXPECT_FALSE(server_->Feed(Hello(131'000, 104)).ok());
}

TEST_F(TlsFlood, TheSecondHelloIsNoLonger) {
  using namespace std::string_literals;
  ASSERT_EQ(SSL_set1_groups_list(client_.ssl(), "X25519:P-384"), 1);
  client_.ShakeHands();
  std::string hello = client_.Sent();
  // The group for which it sent a key share is replaced by an unknown one, in both places: so the
  // server requests another hello.
  for (const std::string& before : {"\x00\x0a\x00\x06\x00\x04"s, "\x00\x33\x00\x26\x00\x24"s}) {
    const std::size_t at = hello.find(before + "\x00\x1d"s);
    ASSERT_NE(at, std::string::npos);
    hello.replace(at + before.size(), 2, "\x1a\x1a");
  }
  ASSERT_TRUE(server_->Feed(hello).ok());
  // These bytes distinguish a retry request from other answers (RFC 8446, section 4.1.3).
  ASSERT_NE(Drained(*server_).find("\xcf\x21\xad\x74\xe5\x9a\x61\x11"), std::string::npos);
  EXPECT_FALSE(server_->Feed(Hello(131'000, 104)).ok());
}

/// A connection that serves its peer as soon as it is notified.
class Connection final : public Counted, private Transport::Watcher {
 public:
  Connection(Wire& wire, std::unique_ptr<TlsSession> tls)
      : transport_(std::make_unique<test::ScriptedTransport>(wire), std::move(tls)) {
    transport_.Attach(*this, *this);
    transport_.AwaitReadable();
  }

 private:
  void OnReadable() override {
    std::array<char, 4096> space;
    (void)transport_.Receive(space);
    transport_.AwaitReadable();
  }
  void OnWritable() override {}

  TlsTransport transport_;
};

TEST_F(TlsFlood, ThoseWhoShakeHandsTakeTurns) {
  Wire wire;
  wire.room = 1 << 20;
  const boost::intrusive_ptr<Connection> connection(new Connection(wire, std::move(server_)));
  client_.ShakeHands();
  wire.arrived = client_.Sent();
  wire.Tell(wire.readable, &Transport::Watcher::OnReadable);
  // It costs nothing yet, so all clients already connected are served before it.
  EXPECT_EQ(wire.taken, "");
  ASSERT_NE(wire.turn, nullptr);
  wire.Tell(wire.turn, &Transport::Watcher::OnTurn);
  EXPECT_NE(wire.taken, "");
  client_.Hear(wire.taken);
  client_.ShakeHands();
  client_.Say("hello");
  wire.arrived = client_.Sent();
  wire.Tell(wire.readable, &Transport::Watcher::OnReadable);
  wire.Tell(wire.turn, &Transport::Watcher::OnTurn);
  EXPECT_EQ(wire.arrived, "");
  // From now on it is served immediately.
  client_.Say("again");
  wire.arrived = client_.Sent();
  wire.Tell(wire.readable, &Transport::Watcher::OnReadable);
  EXPECT_EQ(wire.arrived, "");
  EXPECT_EQ(wire.turn, nullptr);
  wire.LetGo();
}

}  // namespace
}  // namespace weir::net
