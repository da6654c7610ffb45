#pragma once

// What sessions share: the process-wide facts they report, and the parts that a reactor's
// sessions take turns with.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "limiter/limiter.h"
#include "protocol/resp/batch.h"
#include "protocol/resp/parser.h"
#include "protocol/resp/throttle.h"

namespace weir::resp {

/// Who may do what, and who is notified of it.
struct Hooks {
  /// Whether a password opens a connection (AUTH), decided in a time that does not depend on how
  /// much of it is right; must be thread-safe. Empty: no AUTH is needed.
  std::function<bool(std::string_view)> authenticate;
  /// Who a client at this address is, having given this password or none, if it may use the
  /// commands that are for administrators; as `authenticate` otherwise. Empty: everyone may.
  std::function<std::optional<std::string>(std::string_view address, std::string_view password)>
      administrator;
  /// Whether a password is a key with the role for checks, beside those known to `authenticate`.
  /// May be empty.
  std::function<bool(std::string_view address, std::string_view password)> knows;
  /// Whether a client may use WEIR.REFUND and WEIR.RELEASE, having given this password or none; as
  /// `authenticate` otherwise. Empty: everyone may.
  std::function<bool(std::string_view address, std::string_view password)> gives_back;
  /// Whether a client may use WEIR.APPLY, having given this password or none; as `authenticate`
  /// otherwise. Empty: no one may.
  std::function<bool(std::string_view address, std::string_view password)> stores;
  /// What a client may do by the common name in its certificate, without AUTH. May be empty.
  struct Login {
    bool known = false;       ///< no AUTH is needed
    bool gives_back = false;  ///< as gives_back above
    bool stores = false;      ///< as stores above
    std::optional<std::string> administrator = {};
  };
  std::function<Login(std::string_view address, std::string_view subject)> by_subject;
  /// Called for each of them that goes to the limiter. Must be thread-safe and not block. May be
  /// empty.
  std::function<void(const std::string& who, std::string_view action, std::string_view key)>
      on_give_back;
  /// Called when an administrator has reset a key, if there was anything to reset. `outcome` is an
  /// error if the store did not answer in time: then the key may have been reset. Must be
  /// thread-safe and not block. May be empty.
  std::function<void(const std::string& who, std::string_view key, const Status& outcome)> on_reset;
  std::string version;  ///< of the program, as INFO and HELLO report it
};

/// Of the whole process. Thread-safe: options are not changed once sessions run, counters are
/// atomic.
struct Service : Hooks {
  Service() = default;
  explicit Service(Hooks hooks) : Hooks(std::move(hooks)) {}

  ParserLimits limits;
  std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();

  std::atomic<std::int64_t> next_id{1};
  std::atomic<std::int64_t> connections{0};
  std::atomic<std::int64_t> connections_total{0};
  std::atomic<std::int64_t> commands_total{0};
};

/// Of one reactor. Not thread-safe.
class Worker {
 public:
  Worker(Service& service, limiter::Limiter& limiter) : service_(service), limiter_(limiter) {}

  Service& service() noexcept { return service_; }
  limiter::Limiter& limiter() noexcept { return limiter_; }
  QuotaCache& quotas() noexcept { return quotas_; }

  /// Returns a batch to fill. With a store that answers immediately, all sessions of a reactor
  /// share one by turns.
  std::unique_ptr<Batch> TakeBatch();
  void GiveBack(std::unique_ptr<Batch> batch);

 private:
  static constexpr std::size_t kSpareBatches = 8;

  Service& service_;
  limiter::Limiter& limiter_;
  QuotaCache quotas_;
  std::vector<std::unique_ptr<Batch>> spare_;
};

}  // namespace weir::resp
