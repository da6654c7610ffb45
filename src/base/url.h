#pragma once

// The one reader of the URLs that name stores, brokers, providers, receivers and upstreams.
// docs/adr/0015-one-url-reader.md says why it is not Boost.URL.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/result.h"

namespace weir {

/// One of the hosts of a URL.
struct UrlHost {
  std::string name;        ///< without the brackets of an IPv6 address
  std::uint16_t port = 0;  ///< 0: the URL gives none
};

/// scheme://user:password@host:port,host:port/path?name=value&name=value, percent-decoded.
/// A plain value.
struct Url {
  std::string scheme;
  std::string user;
  std::string password;
  bool has_user = false;       ///< there is an @, even if nothing precedes it
  std::vector<UrlHost> hosts;  ///< none: scheme:///path
  std::string path;            ///< without its first slash
  std::vector<std::pair<std::string, std::string>> options;

  /// True if it names one host and no user, path or options.
  bool is_origin() const noexcept {
    return hosts.size() == 1 && !has_user && path.empty() && options.empty();
  }
};

/// kInvalidArgument says which part is wrong in a few words, without repeating any of the text: it
/// may hold a password.
Result<Url> ParseUrl(std::string_view text);

/// What precedes the first colon: "redis" of redis://host, "memory" of memory:. Empty without one.
std::string_view SchemeOf(std::string_view text) noexcept;

/// The text with *** for its user, password and options: safe to log.
std::string WithoutSecrets(std::string_view text);

/// Host and port as one text, with brackets around an IPv6 address.
std::string JoinHostPort(std::string_view host, std::uint16_t port);

}  // namespace weir
