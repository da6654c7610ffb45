// Checks that wait for others are decided the same as without waiting.

#include "conformance/store/redis_backend.h"

namespace weir::store::conformance {

std::unique_ptr<Backend> MakeBackend(const Clock* clock) {
  return std::make_unique<RedisBackend>(clock, "?gather=1ms");
}

}  // namespace weir::store::conformance
