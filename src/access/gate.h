#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "config/config.h"
#include "config/roles.h"
#include "weir/clock.h"
#include "weir/engine.h"

namespace weir::access {

/// A caller as a protocol identifies it.
struct Caller {
  std::string_view address = {};  ///< the peer's, without port
  std::string_view key = {};      ///< a key or a bearer token; empty: none
  std::string_view subject = {};  ///< the common name in the client's certificate; empty: none
  std::string_view door = {};     ///< for the log: "http"
  bool quiet = false;             ///< a wrong key does not count: the same one is checked again
};

/// The decision about a caller.
struct Admission {
  enum class Verdict : std::uint8_t {
    kAdmitted,
    kKeyMissing,
    kKeyWrong,
    kRoleMissing,
    kSlowedDown,  ///< too many wrong keys from this address
  };
  enum class Proof : std::uint8_t { kKey, kToken, kCertificate };

  Verdict verdict = Verdict::kAdmitted;
  std::string name = {};  ///< of the key, token or certificate; empty: none was needed
  std::chrono::seconds retry_after{0};
  Proof proof = Proof::kKey;

  bool admitted() const noexcept { return verdict == Verdict::kAdmitted; }
  /// "key ci", "token alice", "certificate billing"; for a key without a name, the beginning of its
  /// digest: "key c946e893". Empty: none was needed.
  std::string Holder() const;
};

/// The rights of a bearer token; BearerOf returns nullopt for an invalid one.
struct Bearer {
  std::string name;
  Roles roles = kNoRoles;
};
using BearerOf = std::function<std::optional<Bearer>(std::string_view token)>;

/// Decides for every protocol which operations a caller may perform. Keys are kept as SHA-256
/// digests and compared in constant time. An address that presents too many wrong ones is refused
/// without a check for a while, except with keys that it has used successfully before and with
/// bearer tokens: so it can neither guess keys nor lock out others behind the same address.
///
/// Thread-safe.
class Gate {
 public:
  /// How many wrong keys an address may present in a burst, and how soon it may present one more.
  static constexpr std::int64_t kWrongKeys = 10;
  static constexpr std::chrono::seconds kWrongKeyEvery{6};
  /// New bearer tokens that are verified for such an address, at once and then: it takes up to a
  /// millisecond each.
  static constexpr std::int64_t kNewTokens = 20;
  static constexpr std::chrono::milliseconds kNewTokenEvery{50};

  /// `admin_keys` have every role. `resp_keys` have the check role, on RESP only, and do not count
  /// as keys for other protocols.
  Gate(config::Config::Access access, std::vector<config::Digest> admin_keys, BearerOf bearer = {},
       const Clock& clock = SystemClock::Get(), std::vector<config::Digest> resp_keys = {});

  /// Whether any key, token issuer or certificate is configured. If not, nothing needs a key here,
  /// and the protocols decide by the address.
  bool has_keys() const noexcept { return has_keys_; }
  /// Whether this may be done without a key. Then the caller's credentials are not checked.
  bool IsOpen(Operation operation) const noexcept {
    return !has_keys_ || open_[static_cast<std::size_t>(operation)];
  }

  Admission Admit(const Caller& caller, Operation operation);

  /// Whether the key is known and has the role for this, even if the operation is open. A wrong key
  /// counts.
  bool Knows(const Caller& caller, Operation operation);

  /// Wrong keys presented so far.
  std::uint64_t wrong_keys() const noexcept { return wrong_.load(std::memory_order_relaxed); }

 private:
  struct Known {
    std::string name;
    Roles roles = kNoRoles;
    Admission::Proof proof = Admission::Proof::kKey;
  };

  std::optional<Known> Identify(const Caller& caller, const config::Digest& digest) const;
  std::optional<Known> IdentifyToken(std::string_view key) const;
  bool HasShown(const std::string& shown) const;
  void Remember(std::string shown);
  Admission Judge(const Caller& caller, Operation operation);
  Admission OnWrongKey(const Caller& caller);

  const config::Config::Access access_;
  const std::vector<config::Digest> admin_keys_;
  const std::vector<config::Digest> resp_keys_;
  const BearerOf bearer_;
  const bool has_keys_;
  std::array<bool, kOperations> open_{};
  Engine wrong_by_address_;
  Engine tokens_by_address_;
  Engine log_lines_;
  Engine slowed_lines_;
  mutable std::mutex mutex_;
  std::unordered_set<std::string> shown_;  // digests of valid keys, with their callers' addresses
  std::unordered_set<std::string> shown_before_;  // those that shown_ had when it was full
  std::atomic<std::uint64_t> cleared_{0};         // how often shown_ was cleared
  std::atomic<std::uint64_t> wrong_{0};
};

/// The message for the refusal of an operation; does not repeat what the caller sent.
std::string Explain(const Admission& admission, Operation operation);

}  // namespace weir::access
