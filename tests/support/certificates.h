#pragma once

#include <filesystem>
#include <string>

#include "support/temp_dir.h"

namespace weir::test {

/// A small certificate authority for tests of TLS, made with the openssl program in a directory of
/// its own. Everything is valid for 127.0.0.1 and localhost. Errors throw std::runtime_error.
///
/// Not thread-safe.
class Certificates {
 public:
  /// Elliptic curves, or RSA for servers too old to support them in TLS.
  enum class Keys { kEc, kRsa };
  explicit Certificates(Keys keys = Keys::kEc);

  struct Pair {
    std::filesystem::path certificate;
    std::filesystem::path key;
  };

  /// The authority's own certificate.
  std::filesystem::path authority() const { return dir_ / "ca.pem"; }
  /// A certificate for `name`, signed by the authority, in <file>.pem and <file>.key, which are
  /// replaced if they exist. `more_names`: alternative names in addition to those of
  /// this machine, as openssl takes them ("DNS:a,DNS:b").
  Pair Issue(const std::string& name, const std::string& file, const std::string& more_names = {});
  /// A self-signed certificate, which no authority vouches for.
  Pair SelfSigned(const std::string& name, const std::string& file);

  const TempDir& dir() const noexcept { return dir_; }

 private:
  const Keys keys_;
  TempDir dir_;
};

}  // namespace weir::test
