#include "net/tls.h"

#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/certificates.h"
#include "support/wait.h"

namespace weir::net {
namespace {

using test::Certificates;

struct FreeSsl {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(X509* certificate) const { X509_free(certificate); }
};

// OpenSSL's own client against a TlsSession, with the bytes passed by hand.
class Peer {
 public:
  struct Options {
    std::filesystem::path authority;
    std::optional<Certificates::Pair> certificate;
    std::string protocols;  // ALPN in wire format
    int max_version = 0;
  };

  explicit Peer(const Options& options) : context_(SSL_CTX_new(TLS_client_method())) {
    SSL_CTX_load_verify_locations(context_.get(), options.authority.c_str(), nullptr);
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    if (options.max_version != 0) {
      SSL_CTX_set_security_level(context_.get(), 0);
      SSL_CTX_set_max_proto_version(context_.get(), options.max_version);
    }
    if (options.certificate) {
      SSL_CTX_use_certificate_file(context_.get(), options.certificate->certificate.c_str(),
                                   SSL_FILETYPE_PEM);
      SSL_CTX_use_PrivateKey_file(context_.get(), options.certificate->key.c_str(),
                                  SSL_FILETYPE_PEM);
    }
    ssl_.reset(SSL_new(context_.get()));
    if (!options.protocols.empty()) {
      SSL_set_alpn_protos(ssl_.get(),
                          reinterpret_cast<const unsigned char*>(options.protocols.data()),
                          static_cast<unsigned>(options.protocols.size()));
    }
    in_ = BIO_new(BIO_s_mem());
    out_ = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl_.get(), in_, out_);
    SSL_set_connect_state(ssl_.get());
  }

  // Runs until neither has more to send; returns the server's verdict. `chunk` bytes at a time.
  Status Talk(TlsSession& server, std::size_t chunk = 16384) {
    for (;;) {
      bool moved = false;
      SSL_do_handshake(ssl_.get());
      Receive();
      std::vector<char> bytes(chunk);
      for (int n = BIO_read(out_, bytes.data(), static_cast<int>(chunk)); n > 0;
           n = BIO_read(out_, bytes.data(), static_cast<int>(chunk))) {
        moved = true;
        const Status fed = server.Feed({bytes.data(), static_cast<std::size_t>(n)});
        if (!fed.ok()) {
          Carry(server, chunk);
          return fed;
        }
      }
      moved |= Carry(server, chunk);
      if (!moved) return {};
    }
  }

  bool Carry(TlsSession& server, std::size_t chunk) {
    std::vector<char> bytes(chunk);
    bool moved = false;
    while (const std::size_t n = server.Drain(bytes)) {
      BIO_write(in_, bytes.data(), static_cast<int>(n));
      moved = true;
    }
    return moved;
  }

  void Say(const std::string& text) {
    SSL_write(ssl_.get(), text.data(), static_cast<int>(text.size()));
  }
  const std::string& heard() const { return heard_; }
  bool connected() const { return SSL_is_init_finished(ssl_.get()) == 1; }
  void Shutdown() { SSL_shutdown(ssl_.get()); }
  bool server_closed() const { return (SSL_get_shutdown(ssl_.get()) & SSL_RECEIVED_SHUTDOWN) != 0; }
  std::string server_name() const {
    const std::unique_ptr<X509, FreeSsl> certificate(SSL_get1_peer_certificate(ssl_.get()));
    char name[64] = "";
    if (certificate) {
      X509_NAME_get_text_by_NID(X509_get_subject_name(certificate.get()), NID_commonName, name,
                                sizeof name);
    }
    return name;
  }

 private:
  void Receive() {
    std::array<char, 4096> bytes;
    for (int n = SSL_read(ssl_.get(), bytes.data(), bytes.size()); n > 0;
         n = SSL_read(ssl_.get(), bytes.data(), bytes.size())) {
      heard_.append(bytes.data(), static_cast<std::size_t>(n));
    }
    ERR_clear_error();
  }

  std::unique_ptr<SSL_CTX, FreeSsl> context_;
  std::unique_ptr<SSL, FreeSsl> ssl_;
  BIO* in_ = nullptr;
  BIO* out_ = nullptr;
  std::string heard_;
};

class Tls : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { certificates_ = new Certificates; }
  static void TearDownTestSuite() { delete std::exchange(certificates_, nullptr); }

  static std::shared_ptr<TlsContext> Load(const Certificates::Pair& pair,
                                          const std::string& ca = "",
                                          std::vector<std::string> protocols = {},
                                          TlsContext::OnReload on_reload = {}) {
    auto context = TlsContext::Load({pair.certificate.string(), pair.key.string(), ca},
                                    std::move(protocols), std::move(on_reload));
    EXPECT_TRUE(context.ok()) << (context.ok() ? "" : context.error().message);
    return *context;
  }

  static std::unique_ptr<TlsSession> NewSession(TlsContext& context) {
    auto session = context.NewSession();
    EXPECT_TRUE(session.ok());
    return std::move(*session);
  }

  static Peer::Options Trusting() { return {certificates_->authority(), {}, "", 0}; }

  static std::string ReadAll(TlsSession& session) {
    std::string text;
    std::array<char, 7> bytes;  // small, so that a record takes several reads
    for (;;) {
      const Result<std::size_t> count = session.Read(bytes);
      EXPECT_TRUE(count.ok());
      if (!count.ok() || *count == 0) return text;
      text.append(bytes.data(), *count);
    }
  }

  static Certificates* certificates_;
};
Certificates* Tls::certificates_ = nullptr;

TEST_F(Tls, CarriesBytesBothWaysEvenOneAtATime) {
  for (const std::size_t chunk : {std::size_t{16384}, std::size_t{1}}) {
    const auto context = Load(certificates_->Issue("server", "both"));
    const auto server = NewSession(*context);
    Peer peer(Trusting());
    ASSERT_TRUE(peer.Talk(*server, chunk).ok());
    ASSERT_TRUE(server->established());
    ASSERT_TRUE(peer.connected());
    peer.Say("hello from the client");
    ASSERT_TRUE(peer.Talk(*server, chunk).ok());
    EXPECT_EQ(ReadAll(*server), "hello from the client");
    const std::string large(100'000, 'x');
    ASSERT_TRUE(server->Write(large).ok());
    ASSERT_TRUE(peer.Talk(*server, chunk).ok());
    EXPECT_EQ(peer.heard(), large);
    EXPECT_TRUE(server->protocol().empty());
    EXPECT_TRUE(server->peer_name().empty());
  }
}

TEST_F(Tls, BothSidesTellThatTheyClose) {
  const auto context = Load(certificates_->Issue("server", "close"));
  const auto server = NewSession(*context);
  Peer peer(Trusting());
  ASSERT_TRUE(peer.Talk(*server).ok());
  EXPECT_FALSE(server->peer_closed());
  peer.Shutdown();
  ASSERT_TRUE(peer.Talk(*server).ok());
  EXPECT_EQ(ReadAll(*server), "");
  EXPECT_TRUE(server->peer_closed());
  server->Close();
  ASSERT_TRUE(peer.Talk(*server).ok());
  EXPECT_TRUE(peer.server_closed());
}

TEST_F(Tls, ChoosesTheProtocolByAlpn) {
  const auto context = Load(certificates_->Issue("server", "alpn"), "", {"h2"});
  const auto choosing = NewSession(*context);
  Peer::Options options = Trusting();
  options.protocols = "\x08http/1.1\x02h2";
  Peer peer(options);
  ASSERT_TRUE(peer.Talk(*choosing).ok());
  EXPECT_EQ(choosing->protocol(), "h2");
  // No common protocol: refused. No ALPN: served.
  const auto refusing = NewSession(*context);
  options.protocols = "\x08http/1.1";
  Peer stranger(options);
  EXPECT_FALSE(stranger.Talk(*refusing).ok());
  const auto silent = NewSession(*context);
  Peer plain(Trusting());
  EXPECT_TRUE(plain.Talk(*silent).ok());
  EXPECT_TRUE(silent->established());
}

TEST_F(Tls, MutualTlsAsksForACertificate) {
  const auto context =
      Load(certificates_->Issue("server", "mutual"), certificates_->authority().string());
  {
    const auto server = NewSession(*context);
    Peer::Options options = Trusting();
    options.certificate = certificates_->Issue("billing", "client");
    Peer peer(options);
    ASSERT_TRUE(peer.Talk(*server).ok());
    EXPECT_TRUE(server->established());
    EXPECT_EQ(server->peer_name(), "billing");
  }
  {
    const auto server = NewSession(*context);
    Peer::Options options = Trusting();
    options.certificate = certificates_->Issue("billing/CN=admin", "two");
    Peer peer(options);
    ASSERT_TRUE(peer.Talk(*server).ok());
    EXPECT_EQ(server->peer_name(), "") << "which of two names counts, nobody could say";
  }
  {
    const auto server = NewSession(*context);
    Peer peer(Trusting());
    EXPECT_FALSE(peer.Talk(*server).ok()) << "no certificate";
    EXPECT_FALSE(server->established());
  }
  {
    const auto server = NewSession(*context);
    Peer::Options options = Trusting();
    options.certificate = certificates_->SelfSigned("mallory", "mallory");
    Peer peer(options);
    EXPECT_FALSE(peer.Talk(*server).ok()) << "a certificate nobody vouches for";
    EXPECT_FALSE(server->established());
  }
}

TEST_F(Tls, OldVersionsAndNoiseAreRefused) {
  const auto context = Load(certificates_->Issue("server", "old"));
  Peer::Options options = Trusting();
  options.max_version = TLS1_1_VERSION;
  Peer old(options);
  const auto server = NewSession(*context);
  EXPECT_FALSE(old.Talk(*server).ok());
  options.max_version = TLS1_2_VERSION;
  Peer fine(options);
  const auto second = NewSession(*context);
  EXPECT_TRUE(fine.Talk(*second).ok());
  EXPECT_TRUE(second->established());
  const auto third = NewSession(*context);
  const Status noise = third->Feed("PING\r\nPING\r\nPING\r\n");
  ASSERT_FALSE(noise.ok());
  EXPECT_EQ(noise.error().message.rfind("TLS handshake failed: ", 0), 0U);
}

TEST_F(Tls, UnusableFilesAreNamed) {
  const Certificates::Pair good = certificates_->Issue("server", "named");
  const Certificates::Pair other = certificates_->Issue("server", "named-other");
  const auto message = [](const TlsFiles& files) {
    const auto context = TlsContext::Load(files, {});
    return context.ok() ? "no error" : context.error().message;
  };
  EXPECT_EQ(message({good.certificate, "", ""}), "tls.cert and tls.key must be given together");
  EXPECT_EQ(message({"/nowhere.pem", good.key, ""}),
            "tls.cert: cannot use \"/nowhere.pem\": No such file or directory");
  EXPECT_EQ(message({good.certificate, "/nowhere.key", ""}),
            "tls.key: cannot use \"/nowhere.key\": No such file or directory");
  certificates_->dir().Write("no.pem", "not in PEM");
  const std::string no = (certificates_->dir().path() / "no.pem").string();
  const std::string nothing = "\": it contains no such PEM block";
  EXPECT_EQ(message({no, good.key, ""}), "tls.cert: cannot use \"" + no + nothing);
  EXPECT_EQ(message({good.certificate, no, ""}), "tls.key: cannot use \"" + no + nothing);
  EXPECT_EQ(message({good.certificate, other.key, ""}).rfind("tls.key: cannot use ", 0), 0U);
  EXPECT_EQ(message({good.certificate, good.key, "/nowhere.pem"}).rfind("tls.client_ca: ", 0), 0U);
}

TEST_F(Tls, ChangedFilesServeNewConnectionsAndBadOnesAreReported) {
  const Certificates::Pair pair = certificates_->Issue("first", "changing");
  std::atomic<int> reloads = 0;
  std::atomic<bool> last_ok = false;
  const auto context = Load(pair, "", {}, [&](const Status& status) {
    last_ok = status.ok();
    ++reloads;
  });
  const auto name_now = [&] {
    const auto server = NewSession(*context);
    Peer peer(Trusting());
    EXPECT_TRUE(peer.Talk(*server).ok());
    return peer.server_name();
  };
  EXPECT_EQ(name_now(), "first");
  const auto before = NewSession(*context);
  Peer early(Trusting());
  ASSERT_TRUE(early.Talk(*before).ok());

  certificates_->Issue("second", "changing");
  EXPECT_TRUE(test::WaitUntil([&] { return name_now() == "second"; }))
      << "noticed without being told";
  EXPECT_TRUE(test::WaitUntil([&] { return reloads == 1; }));
  EXPECT_TRUE(last_ok);
  early.Say("still here");
  ASSERT_TRUE(early.Talk(*before).ok());
  EXPECT_EQ(ReadAll(*before), "still here") << "open connections go on";

  certificates_->dir().Write("changing.pem", "not a certificate");
  const Status bad = context->Reload();
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().message.rfind("tls.cert: cannot use ", 0), 0U);
  EXPECT_EQ(reloads, 2);
  EXPECT_FALSE(last_ok);
  EXPECT_EQ(name_now(), "second") << "what worked goes on working";

  certificates_->Issue("third", "changing");
  EXPECT_TRUE(context->Reload().ok()) << "as on SIGHUP";
  EXPECT_EQ(name_now(), "third");
}

}  // namespace
}  // namespace weir::net
