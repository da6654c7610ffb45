#include "library/distant_store.h"

#include <utility>

namespace weir::library {

Result<std::unique_ptr<DistantStore>> DistantStore::Open(
    DistantStoreOptions options, std::span<boost::asio::io_context* const> reactors,
    policy::Catalog& catalog) {
  std::unique_ptr<DistantStore> opened(new DistantStore(std::move(options.name), options.guard));
  options.backend.spread = SpreadBy(catalog, options.backend.url);
  auto backend = OpenBackend(std::move(options.backend), opened->guard_);
  if (!backend.ok()) return backend.error();
  opened->backend_ = std::move(*backend);
  if (options.patience.count() > 0) {
    opened->answered_ = AwaitAnswer(*opened->backend_, opened->guard_, options.patience);
  }
  for (boost::asio::io_context* const io : reactors) {
    opened->guarded_.push_back(std::make_unique<store::guard::GuardedStore>(
        *io, opened->guard_, opened->backend_->NewStore(*io)));
  }
  opened->prober_ = std::make_unique<store::guard::Prober>(*reactors.front(), opened->guard_,
                                                           *opened->guarded_.front());
  return opened;
}

void DistantStore::Close() {
  prober_.reset();
  for (const auto& store : guarded_) store->Close();
}

void CollectLostState(std::span<const std::unique_ptr<DistantStore>> stores,
                      telemetry::TextWriter& out) {
  bool named = false;
  for (const auto& store : stores) {
    const std::optional<LostState> lost = store->lost_state();
    if (!lost) continue;
    if (!std::exchange(named, true)) {
      out.Counter(
          "weir_store_lost_state_total",
          "Times a shared store was found to have lost data: limits may have started over.");
    }
    const telemetry::Label label{"store", store->name()};
    out.Sample(lost->times, {&label, store->name().empty() ? 0U : 1U});
  }
}

}  // namespace weir::library
