#include "conformance/store/store_backend.h"
#include "store/memory/memory_store.h"

namespace weir::store::conformance {
namespace {

class MemoryBackend final : public Backend {
 public:
  explicit MemoryBackend(const Clock* clock)
      : engine_(
            *Quota::TokenBucket(1, 1),
            EngineOptions{
                .max_keys = 100'000, .keys = KeyStorage::kText, .clock = clock, .on_evict = {}}) {}

  std::unique_ptr<Store> MakeStore(boost::asio::io_context&, int) override {
    return std::make_unique<memory::MemoryStore>(engine_);
  }
  bool decides_at_once() const override { return true; }

 private:
  Engine engine_;
};

}  // namespace

std::unique_ptr<Backend> MakeBackend(const Clock* clock) {
  return std::make_unique<MemoryBackend>(clock);
}

}  // namespace weir::store::conformance
