#include "conformance/store/redis_backend.h"

namespace weir::store::conformance {

std::unique_ptr<Backend> MakeBackend(const Clock* clock) {
  return std::make_unique<RedisBackend>(clock, "");
}

}  // namespace weir::store::conformance
