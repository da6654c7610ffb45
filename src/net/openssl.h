#pragma once

// OpenSSL functions shared by net/tls*.cc, for those files only.

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>

#include "net/hello_scanner.h"
#include "net/tls.h"

namespace weir::net {

struct Free {
  void operator()(SSL_CTX* context) const noexcept { SSL_CTX_free(context); }
  void operator()(SSL* ssl) const noexcept { SSL_free(ssl); }
  void operator()(X509* certificate) const noexcept { X509_free(certificate); }
};

/// Returns the oldest error that OpenSSL has queued, and empties the queue.
std::string LastTlsError();
/// The error for a file that a setting names and that cannot be used.
Error Unusable(const char* field, const std::string& path);
/// Applies what both sides of a connection have in common.
Status SetUp(SSL_CTX* context);

struct TlsSession::State {
  std::shared_ptr<const void> loaded;  // ChooseProtocol reads it during the handshake
  std::unique_ptr<SSL, Free> ssl;
  BIO* incoming = nullptr;  // owned by ssl
  BIO* outgoing = nullptr;  // owned by ssl
  HelloScanner hello;
  std::chrono::steady_clock::time_point next_update;
  bool flooded = false;  // the peer has changed keys too often

  /// Key updates that a peer may make at once, and then one a second. Peers make one in many
  /// gigabytes; 600 of them fit into one read, and take a reactor milliseconds.
  static constexpr std::chrono::seconds kMostUpdates{16};

  Status Begin(SSL_CTX* context) {
    ssl.reset(SSL_new(context));
    incoming = BIO_new(BIO_s_mem());
    outgoing = BIO_new(BIO_s_mem());
    if (!ssl || incoming == nullptr || outgoing == nullptr) {
      BIO_free(incoming);
      BIO_free(outgoing);
      return Error{Code::kResourceExhausted, "cannot start TLS: " + LastTlsError()};
    }
    SSL_set_bio(ssl.get(), incoming, outgoing);
    SSL_set_msg_callback(ssl.get(), &State::OnMessage);
    SSL_set_msg_callback_arg(ssl.get(), this);
    return {};
  }

  static void OnMessage(int sent, int /*version*/, int content, const void* bytes, std::size_t size,
                        SSL* /*ssl*/, void* self) {
    if (sent != 0 || content != SSL3_RT_HANDSHAKE || size == 0) return;
    if (*static_cast<const unsigned char*>(bytes) != SSL3_MT_KEY_UPDATE) return;
    static_cast<State*>(self)->OnKeyUpdate();
  }

  void OnKeyUpdate() {
    const auto now = std::chrono::steady_clock::now();
    next_update = std::max(next_update, now) + std::chrono::seconds(1);
    if (next_update - now <= kMostUpdates) return;
    flooded = true;
    BIO_reset(incoming);  // the rest of the input is discarded
  }
};

}  // namespace weir::net
