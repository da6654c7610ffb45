#pragma once

// A store on a server, guarded, as used by the reactors of a service and the thread of a Limiter.

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "library/backend.h"
#include "policy/catalog.h"
#include "store/guard/guard.h"
#include "store/guard/guarded_store.h"
#include "store/guard/prober.h"
#include "store/store.h"
#include "telemetry/metrics.h"
#include "weir/result.h"

namespace weir::library {

struct DistantStoreOptions {
  std::string name = {};   ///< for messages and metrics; empty: the only one
  BackendOptions backend;  ///< its `spread` is derived from the policies
  store::guard::GuardOptions guard = {};
  /// How long Open waits for the first answer; zero: it does not.
  std::chrono::milliseconds patience{0};
};

/// One server (or cluster) that limits are kept in, guarded, with a store for each reactor.
///
/// Thread safety: guard, lost_state and ReadKeys from any thread; the rest is for the thread that
/// created it.
class DistantStore {
 public:
  /// Fails if the URL is wrong; if the server does not answer, answered() has the error. Where a
  /// cluster keeps keys follows from `catalog`. `reactors` must outlive it and must not run yet.
  static Result<std::unique_ptr<DistantStore>> Open(
      DistantStoreOptions options, std::span<boost::asio::io_context* const> reactors,
      policy::Catalog& catalog);

  const std::string& name() const noexcept { return name_; }
  const store::guard::Guard& guard() const noexcept { return guard_; }
  /// The result of the first call, which Open waited for; its text begins as AwaitAnswer's do.
  const Status& answered() const noexcept { return answered_; }
  /// The store of reactor `index`.
  store::Store& store(std::size_t index) { return *guarded_[index]; }
  std::optional<LostState> lost_state() const { return backend_->lost_state(); }
  /// Blocks, for about a second at most.
  Result<store::KeyPage> ReadKeys(const store::KeyQuery& query) const {
    return backend_->ReadKeys(query);
  }

  /// Answers everything that still waits, and releases the reactors. Call it when they have ended
  /// and before they are destroyed.
  void Close();

 private:
  DistantStore(std::string name, const store::guard::GuardOptions& options)
      : name_(std::move(name)), guard_(options) {}

  const std::string name_;
  store::guard::Guard guard_;
  Status answered_;
  std::unique_ptr<Backend> backend_;
  std::vector<std::unique_ptr<store::guard::GuardedStore>> guarded_;
  std::unique_ptr<store::guard::Prober> prober_;
};

/// weir_store_lost_state_total of those that are watched.
void CollectLostState(std::span<const std::unique_ptr<DistantStore>> stores,
                      telemetry::TextWriter& out);

/// Wraps a store owned by other code, where an owned one is expected.
///
/// Thread safety: as the lender.
class Borrowed final : public store::Store {
 public:
  explicit Borrowed(store::Store& lender) : lender_(lender) {}
  void Apply(std::span<store::Application> batch, store::Done done) override {
    lender_.Apply(batch, std::move(done));
  }
  std::string GroupOf(std::string_view key) const override { return lender_.GroupOf(key); }

 private:
  store::Store& lender_;
};

}  // namespace weir::library
