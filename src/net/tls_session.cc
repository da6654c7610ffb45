#include <openssl/pemerr.h>

#include <algorithm>
#include <limits>
#include <system_error>
#include <utility>

#include "net/openssl.h"

namespace weir::net {
namespace {

// Forward secrecy and authenticated encryption only; TLS 1.3 has nothing else anyway.
constexpr const char* kCiphers = "ECDHE+AESGCM:ECDHE+CHACHA20";

// Never asks a terminal for the password of an encrypted key.
int NoPassword(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*user*/) { return 0; }

}  // namespace

std::string LastTlsError() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) {
    return "unknown error";
  }
  // A failed open leaves a system error here, not one of OpenSSL's reasons.
  if (ERR_SYSTEM_ERROR(code)) return std::generic_category().message(ERR_GET_REASON(code));
  // If it found nothing readable at all, OpenSSL's own message says little.
  if (ERR_GET_REASON(code) == PEM_R_NO_START_LINE || ERR_GET_REASON(code) == ERR_R_UNSUPPORTED) {
    return "it contains no such PEM block";
  }
  const char* const reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : "error " + std::to_string(code);
}

Error Unusable(const char* field, const std::string& path) {
  return {Code::kInvalidArgument,
          std::string(field) + ": cannot use \"" + path + "\": " + LastTlsError()};
}

Status SetUp(SSL_CTX* context) {
  if (context == nullptr || SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1 ||
      SSL_CTX_set_cipher_list(context, kCiphers) != 1) {
    return Error{Code::kInternal, "cannot set up TLS: " + LastTlsError()};
  }
  SSL_CTX_set_options(
      context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  // Idle connections release their record buffers.
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_default_passwd_cb(context, NoPassword);
  return {};
}

TlsSession::TlsSession(std::unique_ptr<State> state) : state_(std::move(state)) {}

TlsSession::~TlsSession() = default;

bool TlsSession::client() const noexcept { return SSL_is_server(state_->ssl.get()) == 0; }

Status TlsSession::Feed(std::string_view received) {
  if (Begins() && !state_->hello.Take(received)) {
    return Error{Code::kResourceExhausted, "TLS handshake failed: the first message is too long"};
  }
  while (!received.empty()) {
    const auto size =
        static_cast<int>(std::min<std::size_t>(received.size(), std::numeric_limits<int>::max()));
    if (BIO_write(state_->incoming, received.data(), size) != size) {
      return Error{Code::kResourceExhausted, "out of memory for TLS"};
    }
    received.remove_prefix(static_cast<std::size_t>(size));
  }
  return established_ ? Status() : Handshake();
}

/// Whether the next bytes belong to the first or second hello of a client.
bool TlsSession::Begins() const noexcept {
  if (established_ || client()) return false;
  switch (SSL_get_state(state_->ssl.get())) {
    case TLS_ST_BEFORE:
    case TLS_ST_SR_CLNT_HELLO:
    case TLS_ST_EARLY_DATA:
      return true;
    default:
      return false;
  }
}

Status TlsSession::Handshake() {
  ERR_clear_error();
  const int outcome = SSL_do_handshake(state_->ssl.get());
  if (outcome == 1) {
    established_ = true;
    return {};
  }
  const int error = SSL_get_error(state_->ssl.get(), outcome);
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
    return {};
  }
  return Error{Code::kUnauthenticated, "TLS handshake failed: " + LastTlsError()};
}

Result<std::size_t> TlsSession::Read(std::span<char> plain) {
  if (!established_ || peer_closed_) {
    return std::size_t{0};
  }
  ERR_clear_error();
  std::size_t count = 0;
  if (SSL_read_ex(state_->ssl.get(), plain.data(), plain.size(), &count) == 1) {
    return count;
  }
  if (state_->flooded) return Error{Code::kUnavailable, "TLS failed: too many new keys"};
  switch (SSL_get_error(state_->ssl.get(), 0)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
      return std::size_t{0};
    case SSL_ERROR_ZERO_RETURN:
      peer_closed_ = true;
      return std::size_t{0};
    default:
      return Error{Code::kUnavailable, "TLS failed: " + LastTlsError()};
  }
}

Status TlsSession::Write(std::string_view plain) {
  if (plain.empty()) {
    return {};
  }
  ERR_clear_error();
  std::size_t count = 0;
  // A memory BIO takes everything, so the write is never partial.
  if (SSL_write_ex(state_->ssl.get(), plain.data(), plain.size(), &count) != 1) {
    return Error{Code::kUnavailable, "TLS failed: " + LastTlsError()};
  }
  return {};
}

std::size_t TlsSession::Drain(std::span<char> cipher) {
  const auto size =
      static_cast<int>(std::min<std::size_t>(cipher.size(), std::numeric_limits<int>::max()));
  const int count = BIO_read(state_->outgoing, cipher.data(), size);
  return count > 0 ? static_cast<std::size_t>(count) : 0;
}

void TlsSession::Close() {
  if (established_) {
    SSL_shutdown(state_->ssl.get());
    ERR_clear_error();
  }
}

std::string_view TlsSession::protocol() const noexcept {
  const unsigned char* name = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(state_->ssl.get(), &name, &size);
  return {reinterpret_cast<const char*>(name), size};
}

std::string TlsSession::peer_name() const {
  const std::unique_ptr<X509, Free> certificate(SSL_get1_peer_certificate(state_->ssl.get()));
  if (!certificate) {
    return {};
  }
  X509_NAME* const subject = X509_get_subject_name(certificate.get());
  // With two names it would be ambiguous which one counts.
  const int first = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (first < 0 || X509_NAME_get_index_by_NID(subject, NID_commonName, first) >= 0) return {};
  char name[256];
  const int size = X509_NAME_get_text_by_NID(subject, NID_commonName, name, sizeof name);
  return size > 0 ? std::string(name, static_cast<std::size_t>(size)) : std::string();
}

}  // namespace weir::net
