#pragma once

// What the parts of TLS share of OpenSSL. For net/tls*.cc alone.

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

#include "net/tls.h"

namespace weir::net {

struct Free {
  void operator()(SSL_CTX* context) const noexcept { SSL_CTX_free(context); }
  void operator()(SSL* ssl) const noexcept { SSL_free(ssl); }
  void operator()(X509* certificate) const noexcept { X509_free(certificate); }
};

/// The oldest error OpenSSL has queued, and empties the queue.
std::string LastTlsError();
/// A file that a setting names cannot be used.
Error Unusable(const char* field, const std::string& path);
/// What holds for both sides of a connection.
Status SetUp(SSL_CTX* context);

struct TlsSession::State {
  std::shared_ptr<const void> loaded;  // ChooseProtocol reads it during the handshake
  std::unique_ptr<SSL, Free> ssl;
  BIO* incoming = nullptr;  // owned by ssl
  BIO* outgoing = nullptr;  // owned by ssl

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
    return {};
  }
};

}  // namespace weir::net
