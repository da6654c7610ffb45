#pragma once

#include <memory>
#include <string>

#include "bench/bench_wire.h"
#include "weir/result.h"

namespace weir::app {

/// Whom a load generator trusts and what it presents, as given on the command line.
struct BenchTlsFiles {
  std::string ca = {};        ///< PEM file; empty: the authorities that the system trusts
  std::string cert = {};      ///< PEM file, for mutual TLS
  std::string cert_key = {};  ///< PEM file
};

/// Puts TLS around the wires of a load generator. There is no way to accept a certificate that
/// is not trusted, or that is for another host.
///
/// Thread-safe; the wires it makes are not.
class BenchTls {
 public:
  /// kInvalidArgument names the file that cannot be used.
  static Result<BenchTls> Make(const BenchTlsFiles& files);

  /// `host` must match the certificate; `protocol` is offered by ALPN unless it is empty.
  std::unique_ptr<BenchWire> Around(std::unique_ptr<BenchWire> inner, const std::string& host,
                                    const std::string& protocol) const;

 private:
  explicit BenchTls(std::shared_ptr<void> context) : context_(std::move(context)) {}

  std::shared_ptr<void> context_;  // an SSL_CTX, whose header is not included here
};

}  // namespace weir::app
