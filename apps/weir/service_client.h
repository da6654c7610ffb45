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

/// Speaks HTTP/1.1 to a running service: blocking, a connection per request, in the clear.
///
/// Thread-safe: it holds nothing but names.
class ServiceClient {
 public:
  /// `url` like http://127.0.0.1:8080; `key` goes along as X-API-Key if it is not empty.
  static Result<ServiceClient> For(const std::string& url, std::string key);

  /// kUnavailable if nobody answers there, or not in HTTP.
  Result<ServiceReply> Send(std::string_view method, std::string_view target,
                            std::string_view body = {}) const;

  /// host:port
  std::string where() const { return host_ + ":" + port_; }
  const std::string& host() const noexcept { return host_; }
  const std::string& port() const noexcept { return port_; }

 private:
  ServiceClient(std::string host, std::string port, std::string key)
      : host_(std::move(host)), port_(std::move(port)), key_(std::move(key)) {}

  std::string host_;
  std::string port_;
  std::string key_;
};

/// A blocking TCP connection; -1 if there is none to be had. The caller closes it.
int ConnectTcp(const std::string& host, const std::string& port);

/// Percent-encodes everything but letters, digits and -_.~.
std::string UrlEscaped(std::string_view text);

}  // namespace weir::app
