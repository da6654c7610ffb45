#include "net/tls.h"

#include <openssl/err.h>
#include <openssl/pemerr.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include <algorithm>
#include <limits>
#include <system_error>
#include <utility>

namespace weir::net {
namespace {

struct Free {
  void operator()(SSL_CTX* context) const noexcept { SSL_CTX_free(context); }
  void operator()(SSL* ssl) const noexcept { SSL_free(ssl); }
  void operator()(X509* certificate) const noexcept { X509_free(certificate); }
};

constexpr std::chrono::milliseconds kLookEvery{1000};
// Forward secrecy and authenticated encryption only; TLS 1.3 has nothing else anyway.
constexpr const char* kCiphers = "ECDHE+AESGCM:ECDHE+CHACHA20";
constexpr unsigned char kSessionIdContext[] = "weir";

// The oldest error OpenSSL has queued, and empties the queue.
std::string LastTlsError() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) {
    return "unknown error";
  }
  // As an open that failed leaves it: not one of OpenSSL's reasons.
  if (ERR_SYSTEM_ERROR(code)) return std::generic_category().message(ERR_GET_REASON(code));
  // Where it found nothing that it could read at all, its own words say little.
  if (ERR_GET_REASON(code) == PEM_R_NO_START_LINE || ERR_GET_REASON(code) == ERR_R_UNSUPPORTED) {
    return "there is nothing of this kind in PEM format in it";
  }
  const char* const reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : "error " + std::to_string(code);
}

Error Unusable(const char* field, const std::string& path) {
  return {Code::kInvalidArgument,
          "tls." + std::string(field) + ": cannot use \"" + path + "\": " + LastTlsError()};
}

// Never asks a terminal for the password of an encrypted key.
int NoPassword(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*user*/) { return 0; }

std::int64_t SteadyMillis() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

}  // namespace

struct TlsContext::Loaded {
  std::unique_ptr<SSL_CTX, Free> context;
  std::string alpn;  // as on the wire: each name behind its length

  static int ChooseProtocol(SSL* /*ssl*/, const unsigned char** out, unsigned char* out_size,
                            const unsigned char* offered, unsigned offered_size, void* self) {
    const std::string& alpn = static_cast<const Loaded*>(self)->alpn;
    unsigned char* chosen = nullptr;
    const int outcome = SSL_select_next_proto(
        &chosen, out_size, reinterpret_cast<const unsigned char*>(alpn.data()),
        static_cast<unsigned>(alpn.size()), offered, offered_size);
    *out = chosen;
    return outcome == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
  }
};

struct TlsSession::State {
  std::shared_ptr<const void> loaded;  // ChooseProtocol reads it during the handshake
  std::unique_ptr<SSL, Free> ssl;
  BIO* incoming = nullptr;  // owned by ssl
  BIO* outgoing = nullptr;  // owned by ssl
};

TlsContext::TlsContext(TlsFiles files, std::vector<std::string> protocols, OnReload on_reload)
    : files_(std::move(files)),
      protocols_(std::move(protocols)),
      on_reload_(std::move(on_reload)) {}

TlsContext::~TlsContext() = default;

Result<std::shared_ptr<TlsContext>> TlsContext::Load(TlsFiles files,
                                                     std::vector<std::string> protocols,
                                                     OnReload on_reload) {
  if (files.certificate.empty() || files.key.empty()) {
    return Error{Code::kInvalidArgument, "tls.cert and tls.key must both be given"};
  }
  std::shared_ptr<TlsContext> context(
      new TlsContext(std::move(files), std::move(protocols), std::move(on_reload)));
  context->fingerprint_ = context->Fingerprint();
  auto loaded = context->Read();
  if (!loaded.ok()) {
    return loaded.error();
  }
  context->loaded_ = std::move(*loaded);
  return context;
}

Result<std::shared_ptr<const TlsContext::Loaded>> TlsContext::Read() const {
  ERR_clear_error();
  auto loaded = std::make_shared<Loaded>();
  loaded->context.reset(SSL_CTX_new(TLS_server_method()));
  SSL_CTX* const context = loaded->context.get();
  if (context == nullptr || SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1 ||
      SSL_CTX_set_cipher_list(context, kCiphers) != 1) {
    return Error{Code::kInternal, "cannot set up TLS: " + LastTlsError()};
  }
  SSL_CTX_set_options(
      context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  // Idle connections give their record buffers back.
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_default_passwd_cb(context, NoPassword);
  SSL_CTX_set_session_id_context(context, kSessionIdContext, sizeof kSessionIdContext - 1);
  if (SSL_CTX_use_certificate_chain_file(context, files_.certificate.c_str()) != 1) {
    return Unusable("cert", files_.certificate);
  }
  if (SSL_CTX_use_PrivateKey_file(context, files_.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context) != 1) {
    return Unusable("key", files_.key);
  }
  if (!files_.client_ca.empty()) {
    STACK_OF(X509_NAME)* const names = SSL_load_client_CA_file(files_.client_ca.c_str());
    if (names == nullptr ||
        SSL_CTX_load_verify_locations(context, files_.client_ca.c_str(), nullptr) != 1) {
      return Unusable("client_ca", files_.client_ca);
    }
    SSL_CTX_set_client_CA_list(context, names);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  }
  for (const std::string& protocol : protocols_) {
    loaded->alpn.push_back(static_cast<char>(protocol.size()));
    loaded->alpn += protocol;
  }
  if (!loaded->alpn.empty()) {
    SSL_CTX_set_alpn_select_cb(context, Loaded::ChooseProtocol, loaded.get());
  }
  return std::shared_ptr<const Loaded>(std::move(loaded));
}

// What changes when a file is replaced or rewritten. A link's target counts, as with mounted
// secrets.
std::string TlsContext::Fingerprint() const {
  std::string all;
  for (const std::string* path : {&files_.certificate, &files_.key, &files_.client_ca}) {
    struct stat info {};
    if (!path->empty() && stat(path->c_str(), &info) == 0) {
      all += std::to_string(info.st_dev) + ":" + std::to_string(info.st_ino) + ":" +
             std::to_string(info.st_size) + ":" + std::to_string(info.st_mtim.tv_sec) + "." +
             std::to_string(info.st_mtim.tv_nsec);
    }
    all += ";";
  }
  return all;
}

Status TlsContext::Reload() {
  const std::string fingerprint = Fingerprint();
  auto loaded = Read();
  {
    const std::lock_guard lock(mutex_);
    // Also after a failure: the same bad files are not tried, nor complained about, over and over.
    fingerprint_ = fingerprint;
    if (loaded.ok()) {
      loaded_ = *loaded;
    }
  }
  Status status = loaded.ok() ? Status() : Status(loaded.error());
  if (on_reload_) {
    on_reload_(status);
  }
  return status;
}

void TlsContext::ReloadIfChanged() {
  const std::int64_t now = SteadyMillis();
  std::int64_t due = next_look_.load(std::memory_order_relaxed);
  if (now < due || !next_look_.compare_exchange_strong(due, now + kLookEvery.count())) {
    return;
  }
  const std::string fingerprint = Fingerprint();
  {
    const std::lock_guard lock(mutex_);
    if (fingerprint == fingerprint_) {
      return;
    }
  }
  static_cast<void>(Reload());  // on_reload_ has told of it
}

Result<std::unique_ptr<TlsSession>> TlsContext::NewSession() {
  ReloadIfChanged();
  auto state = std::make_unique<TlsSession::State>();
  std::shared_ptr<const Loaded> loaded;
  {
    const std::lock_guard lock(mutex_);
    loaded = loaded_;
  }
  state->loaded = loaded;
  state->ssl.reset(SSL_new(loaded->context.get()));
  state->incoming = BIO_new(BIO_s_mem());
  state->outgoing = BIO_new(BIO_s_mem());
  if (!state->ssl || state->incoming == nullptr || state->outgoing == nullptr) {
    BIO_free(state->incoming);
    BIO_free(state->outgoing);
    return Error{Code::kResourceExhausted, "cannot begin TLS: " + LastTlsError()};
  }
  SSL_set_bio(state->ssl.get(), state->incoming, state->outgoing);
  SSL_set_accept_state(state->ssl.get());
  return std::unique_ptr<TlsSession>(new TlsSession(std::move(state)));
}

TlsSession::TlsSession(std::unique_ptr<State> state) : state_(std::move(state)) {}

TlsSession::~TlsSession() = default;

Status TlsSession::Feed(std::string_view received) {
  while (!received.empty()) {
    const auto size =
        static_cast<int>(std::min<std::size_t>(received.size(), std::numeric_limits<int>::max()));
    if (BIO_write(state_->incoming, received.data(), size) != size) {
      return Error{Code::kResourceExhausted, "no memory for TLS"};
    }
    received.remove_prefix(static_cast<std::size_t>(size));
  }
  return established_ ? Status() : Handshake();
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
  char name[256];
  const int size = X509_NAME_get_text_by_NID(X509_get_subject_name(certificate.get()),
                                             NID_commonName, name, sizeof name);
  return size > 0 ? std::string(name, static_cast<std::size_t>(size)) : std::string();
}

}  // namespace weir::net
