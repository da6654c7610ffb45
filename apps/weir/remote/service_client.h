#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/result.h"

namespace weir::app {

/// An answer of the service, whatever its status.
struct ServiceReply {
  int status = 0;
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};  ///< names in lower case

  bool ok() const noexcept { return status / 100 == 2; }
  /// Empty if there is none. `name` in lower case.
  std::string_view Header(std::string_view name) const noexcept;
};

/// Where a service is and how to authenticate.
struct ServiceAccess {
  std::string url = "http://127.0.0.1:8080";
  std::string key = {};         ///< sent as X-API-Key if it is not empty
  std::string ca = {};          ///< PEM file; empty: the authorities that the system trusts
  std::string cert = {};        ///< PEM file, for mutual TLS
  std::string cert_key = {};    ///< PEM file
  double timeout_seconds = 60;  ///< for the whole exchange
};

/// Speaks HTTP/1.1 to a running service, with TLS if the URL says https: blocking, a connection per
/// request.
///
/// Thread-safe: it holds only settings.
class ServiceClient {
 public:
  /// kInvalidArgument names the option that is wrong.
  static Result<ServiceClient> For(ServiceAccess access);

  /// kUnavailable: the service cannot be reached or is not trusted, so nothing was sent.
  /// kDeadlineExceeded: there is no answer in time, or not in HTTP; the service may have acted on
  /// the request.
  Result<ServiceReply> Send(std::string_view method, std::string_view target,
                            std::string_view body = {}) const;

  /// scheme://host:port
  const std::string& where() const noexcept { return access_.url; }

 private:
  explicit ServiceClient(ServiceAccess access) : access_(std::move(access)) {}

  ServiceAccess access_;
};

/// A blocking TCP connection; -1 if it cannot be made. The caller closes it.
int ConnectTcp(const std::string& host, const std::string& port);

/// Percent-encodes everything except letters, digits and -_.~.
std::string UrlEscaped(std::string_view text);

}  // namespace weir::app
