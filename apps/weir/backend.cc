#include "backend.h"

namespace weir::app {

Result<std::unique_ptr<Backend>> OpenBackend(const config::Config& config, store::guard::Guard&) {
  return Error{Code::kUnimplemented,
               "store: " + config::WithoutSecrets(config.store) + " cannot be opened here"};
}

}  // namespace weir::app
