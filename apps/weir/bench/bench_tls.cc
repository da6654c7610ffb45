#include "bench/bench_tls.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <array>
#include <utility>

namespace weir::app {
namespace {

/// Why OpenSSL failed.
std::string Reason(const SSL* ssl) {
  const long verified = ssl != nullptr ? SSL_get_verify_result(ssl) : X509_V_OK;
  if (verified != X509_V_OK) {
    ERR_clear_error();
    return std::string(X509_verify_cert_error_string(verified)) +
           "; use --ca to give the CA certificate";
  }
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* reason = code != 0 ? ERR_reason_error_string(code) : nullptr;
  return reason != nullptr ? reason : "the connection was closed";
}

/// TLS between memory and memory: bytes of the peer go in, bytes for it come out. Not thread-safe.
class TlsWire final : public BenchWire {
 public:
  TlsWire(SSL_CTX* context, std::unique_ptr<BenchWire> inner, const std::string& host,
          const std::string& protocol)
      : inner_(std::move(inner)), ssl_(SSL_new(context), &SSL_free) {
    from_peer_ = BIO_new(BIO_s_mem());
    to_peer_ = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl_.get(), from_peer_, to_peer_);
    SSL_set_connect_state(ssl_.get());
    in6_addr address{};
    if (inet_pton(AF_INET, host.c_str(), &address) == 1 ||
        inet_pton(AF_INET6, host.c_str(), &address) == 1) {
      X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_.get()), host.c_str());
    } else {
      SSL_set1_host(ssl_.get(), host.c_str());
      SSL_set_tlsext_host_name(ssl_.get(), host.c_str());
    }
    if (!protocol.empty()) {
      const std::string offer = static_cast<char>(protocol.size()) + protocol;
      SSL_set_alpn_protos(ssl_.get(), reinterpret_cast<const unsigned char*>(offer.data()),
                          static_cast<unsigned>(offer.size()));
    }
  }

  void Begin(std::string& out) override {
    inner_->Begin(plain_);
    Advance();
    Flush(out);
  }

  void Ask(std::string_view key, std::string& out) override {
    inner_->Ask(key, plain_);
    Flush(out);
  }

  bool Take(std::string_view bytes, std::vector<HeardReply>& replies, std::string& out) override {
    BIO_write(from_peer_, bytes.data(), static_cast<int>(bytes.size()));
    bool good = Advance() && (!open() || Read(replies));
    good = Flush(out) && good;
    return good;
  }

  bool open() const override { return SSL_is_init_finished(ssl_.get()) == 1; }
  std::string why() const override { return why_.empty() ? inner_->why() : why_; }

 private:
  /// Continues the handshake as far as the received bytes allow.
  bool Advance() { return open() || Went(SSL_do_handshake(ssl_.get())); }

  bool Read(std::vector<HeardReply>& replies) {
    for (;;) {
      const int got = SSL_read(ssl_.get(), buffer_.data(), static_cast<int>(buffer_.size()));
      if (got <= 0) return Went(got);
      const std::string_view said(buffer_.data(), static_cast<std::size_t>(got));
      if (!inner_->Take(said, replies, plain_)) return false;
    }
  }

  /// Encrypts pending bytes, once the handshake is over; it has room for all of them.
  bool Flush(std::string& out) {
    bool good = true;
    if (open() && !plain_.empty()) {
      good = Went(SSL_write(ssl_.get(), plain_.data(), static_cast<int>(plain_.size())));
      plain_.clear();
    }
    char* bytes = nullptr;
    const long size = BIO_get_mem_data(to_peer_, &bytes);
    if (size > 0) out.append(bytes, static_cast<std::size_t>(size));
    BIO_reset(to_peer_);
    return good;
  }

  bool Went(int result) {
    if (result > 0 || SSL_get_error(ssl_.get(), result) == SSL_ERROR_WANT_READ) return true;
    why_ = "TLS: " + Reason(ssl_.get());
    return false;
  }

  std::unique_ptr<BenchWire> inner_;
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_;
  BIO* from_peer_ = nullptr;  // both belong to ssl_
  BIO* to_peer_ = nullptr;
  std::string plain_;
  std::string why_;
  std::array<char, 16 * 1024> buffer_{};
};

Error Unusable(const char* option, const std::string& file) {
  return {Code::kInvalidArgument, std::string(option) + " " + file + ": " + Reason(nullptr)};
}

}  // namespace

Result<BenchTls> BenchTls::Make(const BenchTlsFiles& files) {
  const std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
  if (context == nullptr) return Error{Code::kInternal, "TLS: " + Reason(nullptr)};
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  if (files.ca.empty()) {
    SSL_CTX_set_default_verify_paths(context.get());
  } else if (SSL_CTX_load_verify_file(context.get(), files.ca.c_str()) != 1) {
    return Unusable("--ca", files.ca);
  }
  if (!files.cert.empty() &&
      SSL_CTX_use_certificate_chain_file(context.get(), files.cert.c_str()) != 1) {
    return Unusable("--cert", files.cert);
  }
  if (!files.cert_key.empty() &&
      SSL_CTX_use_PrivateKey_file(context.get(), files.cert_key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return Unusable("--cert-key", files.cert_key);
  }
  return BenchTls(context);
}

std::unique_ptr<BenchWire> BenchTls::Around(std::unique_ptr<BenchWire> inner,
                                            const std::string& host,
                                            const std::string& protocol) const {
  return std::make_unique<TlsWire>(static_cast<SSL_CTX*>(context_.get()), std::move(inner), host,
                                   protocol);
}

}  // namespace weir::app
