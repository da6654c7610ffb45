#pragma once

#include <span>
#include <vector>

#include "store/store.h"
#include "weir/engine.h"

namespace weir::store::memory {

/// The store inside this process: an Engine that all reactors share. Completes before Apply
/// returns, on the calling thread, and allocates nothing once its buffers have grown to the largest
/// batch.
///
/// Thread safety: one per reactor; the engine behind it is shared and must outlive it.
class MemoryStore final : public Store {
 public:
  explicit MemoryStore(Engine& engine) : engine_(engine) {}

  void Apply(std::span<Application> batch, Done done) override;

 private:
  void ChargeSingles(std::span<Application> batch);
  void ApplyOne(Application& application);
  void Settle(Application& application);

  Engine& engine_;
  std::vector<Ask> asks_;
  std::vector<Decision> decisions_;
};

}  // namespace weir::store::memory
