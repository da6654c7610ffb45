#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/result.h"

namespace weir::postgres {

/// A database and its credentials, as libpq's parameters.
///
/// TLS is set as for the other drivers: `tls=required` (the server's chain and name are verified,
/// never plaintext), `tls=insecure-no-verify`, `tls=off`, `tls_ca=FILE` and, for clients that need
/// one, `tls_cert=FILE&tls_key=FILE`. Without any of them libpq's own `sslmode` applies, except
/// `require`, which verifies nothing and is refused. Of several hosts the one that takes writes is
/// used, unless `target_session_attrs` is given; if two do, none is (survey.h).
class Target {
 public:
  /// Messages never show the password.
  static Result<Target> Parse(const std::string& url);

  /// The hosts that have to be looked up: neither sockets nor those with a `hostaddr`.
  std::vector<std::string> names() const;

  /// Whether there are several hosts, of which the one that accepts writes is wanted.
  bool wants_primary() const;
  /// One target for each host.
  std::vector<Target> Hosts() const;

  /// Default sets a parameter that the url omits; Set overrides what the url must not choose.
  void Default(std::string_view name, std::string_view value);
  void Set(std::string_view name, std::string_view value);

  /// Begins with the next of several hosts, so that one that swallows what it is sent is not tried
  /// first forever.
  void Rotate();

  /// The arguments of PQconnectStartParams; valid as long as this, until it is changed.
  struct Words {
    std::vector<const char*> names;
    std::vector<const char*> values;
  };
  Words words() const;

 private:
  std::string* Find(std::string_view name);
  const std::string* Find(std::string_view name) const;

  std::vector<std::pair<std::string, std::string>> values_;
};

}  // namespace weir::postgres
