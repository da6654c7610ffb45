#pragma once

#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "library/backend.h"
#include "net/reactor_pool.h"
#include "policy/catalog.h"
#include "store/guard/guard.h"
#include "store/guard/guarded_store.h"
#include "store/guard/prober.h"
#include "weir/result.h"

namespace weir::app {

/// One server (or cluster) that limits are kept in, guarded, with a store for each reactor.
///
/// Thread safety: guard and ReadKeys from any thread; the rest is for the thread that made it.
class DistantStore {
 public:
  /// `name` is for messages and metrics; empty: there is but this one. Fails if the URL is wrong,
  /// or if it does not answer and config.distant.required. Where a cluster keeps keys follows from
  /// `catalog`. `config` and `pool` must outlive it.
  static Result<std::unique_ptr<DistantStore>> Open(const config::Config& config, std::string name,
                                                    const std::string& url, net::ReactorPool& pool,
                                                    policy::Catalog& catalog);

  const std::string& name() const noexcept { return name_; }
  const store::guard::Guard& guard() const noexcept { return *guard_; }
  /// That of reactor `index`.
  store::Store& store(std::size_t index) { return *guarded_[index]; }
  /// Blocks, for about a second at most.
  Result<store::KeyPage> ReadKeys(const store::KeyQuery& query) const {
    return backend_->ReadKeys(query);
  }

  /// Everything that still waits is answered, and the reactors are let go of. When they have ended
  /// and before they are destroyed.
  void Close();

 private:
  DistantStore(std::string name, const store::guard::GuardOptions& options)
      : name_(std::move(name)), guard_(std::in_place, options) {}

  const std::string name_;
  std::optional<store::guard::Guard> guard_;
  std::unique_ptr<library::Backend> backend_;
  std::vector<std::unique_ptr<store::guard::GuardedStore>> guarded_;
  std::unique_ptr<store::guard::Prober> prober_;
};

/// A store that belongs to somebody else, in the place of one that would be owned.
///
/// Thread safety: as the store that it lends.
class Borrowed final : public store::Store {
 public:
  explicit Borrowed(store::Store& lender) : lender_(lender) {}
  void Apply(std::span<store::Application> batch, store::Done done) override {
    lender_.Apply(batch, std::move(done));
  }
  bool immediate() const noexcept override { return lender_.immediate(); }

 private:
  store::Store& lender_;
};

}  // namespace weir::app
