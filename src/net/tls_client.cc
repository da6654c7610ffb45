#include <openssl/x509v3.h>

#include <utility>

#include "net/openssl.h"

namespace weir::net {

struct TlsClientContext::Loaded {
  std::unique_ptr<SSL_CTX, Free> context;
  bool verify = true;
};

TlsClientContext::TlsClientContext(std::unique_ptr<Loaded> loaded) : loaded_(std::move(loaded)) {}
TlsClientContext::~TlsClientContext() = default;

Result<std::shared_ptr<TlsClientContext>> TlsClientContext::Load(const TlsClientOptions& options) {
  ERR_clear_error();
  auto loaded = std::make_unique<Loaded>();
  loaded->verify = options.verify;
  loaded->context.reset(SSL_CTX_new(TLS_client_method()));
  SSL_CTX* const context = loaded->context.get();
  if (const Status set = SetUp(context); !set.ok()) return set.error();
  const bool known = options.ca.empty()
                         ? SSL_CTX_set_default_verify_paths(context) == 1
                         : SSL_CTX_load_verify_locations(context, options.ca.c_str(), nullptr) == 1;
  if (!known) return Unusable("tls_ca", options.ca);
  if (!options.certificate.empty()) {
    if (SSL_CTX_use_certificate_chain_file(context, options.certificate.c_str()) != 1) {
      return Unusable("tls_cert", options.certificate);
    }
    if (SSL_CTX_use_PrivateKey_file(context, options.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(context) != 1) {
      return Unusable("tls_key", options.key);
    }
  }
  SSL_CTX_set_verify(context, options.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  return std::shared_ptr<TlsClientContext>(new TlsClientContext(std::move(loaded)));
}

Result<std::unique_ptr<TlsSession>> TlsClientContext::NewSession(const std::string& host) const {
  auto state = std::make_unique<TlsSession::State>();
  if (const Status begun = state->Begin(loaded_->context.get()); !begun.ok()) return begun.error();
  SSL* const ssl = state->ssl.get();
  // An address is verified as one, and is never sent as a name.
  X509_VERIFY_PARAM* const wanted = SSL_get0_param(ssl);
  if (X509_VERIFY_PARAM_set1_ip_asc(wanted, host.c_str()) != 1) {
    if (SSL_set1_host(ssl, host.c_str()) != 1 || SSL_set_tlsext_host_name(ssl, host.c_str()) != 1) {
      return Error{Code::kInvalidArgument, "cannot start TLS: " + LastTlsError()};
    }
  }
  ERR_clear_error();
  SSL_set_connect_state(ssl);
  return std::unique_ptr<TlsSession>(new TlsSession(std::move(state)));
}

}  // namespace weir::net
