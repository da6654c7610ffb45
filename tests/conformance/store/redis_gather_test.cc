// Checks wait for others, and are decided as they are without that.

#include "conformance/store/redis_backend.h"

namespace weir::store::conformance {

std::unique_ptr<Backend> MakeBackend(const Clock* clock) {
  return std::make_unique<RedisBackend>(clock, "?gather=1ms");
}

}  // namespace weir::store::conformance
