#include "net/tls.h"

#include <sys/stat.h>

#include <utility>

#include "net/openssl.h"

namespace weir::net {
namespace {

constexpr std::chrono::milliseconds kLookEvery{1000};
constexpr unsigned char kSessionIdContext[] = "weir";
/// The size of certificates that a client may send: OpenSSL allocates as much before they arrive.
constexpr long kMostCertificates = 32L << 10U;

}  // namespace

struct TlsContext::Loaded {
  std::unique_ptr<SSL_CTX, Free> context;
  std::string alpn;  // as on the wire: each name after its length

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

TlsContext::TlsContext(TlsFiles files, std::vector<std::string> protocols, OnReload on_reload)
    : files_(std::move(files)),
      protocols_(std::move(protocols)),
      on_reload_(std::move(on_reload)) {}

TlsContext::~TlsContext() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stopped_.notify_all();
  if (watcher_.joinable()) watcher_.join();
}

Result<std::shared_ptr<TlsContext>> TlsContext::Load(TlsFiles files,
                                                     std::vector<std::string> protocols,
                                                     OnReload on_reload) {
  if (files.certificate.empty() || files.key.empty()) {
    return Error{Code::kInvalidArgument, "tls.cert and tls.key must be given together"};
  }
  std::shared_ptr<TlsContext> context(
      new TlsContext(std::move(files), std::move(protocols), std::move(on_reload)));
  context->fingerprint_ = context->Fingerprint();
  auto loaded = context->Read();
  if (!loaded.ok()) {
    return loaded.error();
  }
  context->loaded_ = std::move(*loaded);
  context->watcher_ = std::thread([self = context.get()] { self->Watch(); });
  return context;
}

Result<std::shared_ptr<const TlsContext::Loaded>> TlsContext::Read() const {
  ERR_clear_error();
  auto loaded = std::make_shared<Loaded>();
  loaded->context.reset(SSL_CTX_new(TLS_server_method()));
  SSL_CTX* const context = loaded->context.get();
  if (const Status set = SetUp(context); !set.ok()) return set.error();
  // Clients keep theirs, as tickets: OpenSSL would keep 20,000 of those that take none.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_session_id_context(context, kSessionIdContext, sizeof kSessionIdContext - 1);
  if (SSL_CTX_use_certificate_chain_file(context, files_.certificate.c_str()) != 1) {
    return Unusable("tls.cert", files_.certificate);
  }
  if (SSL_CTX_use_PrivateKey_file(context, files_.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context) != 1) {
    return Unusable("tls.key", files_.key);
  }
  if (!files_.client_ca.empty()) {
    STACK_OF(X509_NAME)* const names = SSL_load_client_CA_file(files_.client_ca.c_str());
    if (names == nullptr ||
        SSL_CTX_load_verify_locations(context, files_.client_ca.c_str(), nullptr) != 1) {
      return Unusable("tls.client_ca", files_.client_ca);
    }
    SSL_CTX_set_client_CA_list(context, names);
    SSL_CTX_set_max_cert_list(context, kMostCertificates);
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
    // Also after a failure: the same bad files must not be tried and logged over and over.
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

void TlsContext::Watch() {
  std::string seen;
  std::unique_lock lock(mutex_);
  while (!stopped_.wait_for(lock, kLookEvery, [this] { return stopping_; })) {
    lock.unlock();
    const std::string now = Fingerprint();
    const bool settled = std::exchange(seen, now) == now;
    lock.lock();
    if (!settled || now == fingerprint_) continue;
    lock.unlock();
    static_cast<void>(Reload());  // on_reload_ has reported the outcome
    lock.lock();
  }
}

Result<std::unique_ptr<TlsSession>> TlsContext::NewSession() {
  auto state = std::make_unique<TlsSession::State>();
  std::shared_ptr<const Loaded> loaded;
  {
    const std::lock_guard lock(mutex_);
    loaded = loaded_;
  }
  state->loaded = loaded;
  if (const Status begun = state->Begin(loaded->context.get()); !begun.ok()) return begun.error();
  SSL_set_accept_state(state->ssl.get());
  return std::unique_ptr<TlsSession>(new TlsSession(std::move(state)));
}

}  // namespace weir::net
