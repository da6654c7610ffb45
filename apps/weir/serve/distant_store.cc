#include "serve/distant_store.h"

#include <chrono>
#include <utility>

#include "base/url.h"
#include "telemetry/log.h"

namespace weir::app {
namespace {

using telemetry::Level;
using telemetry::Log;

store::guard::GuardOptions GuardOptionsOf(const config::Config& config) {
  store::guard::GuardOptions options;
  options.timeout = config.distant.timeout;
  options.breaker.failures = config.distant.breaker_failures;
  options.cache.max_keys = config.distant.deny_cache;
  return options;
}

library::BackendOptions BackendOptionsOf(const config::Config& config, const std::string& url) {
  return {.url = url,
          .connections = config.distant.connections,
          .timeout = config.distant.timeout,
          .migrate = config.distant.migrate,
          .refusals = config.distant.deny_cache != 0};
}

}  // namespace

Result<std::unique_ptr<DistantStore>> DistantStore::Open(const config::Config& config,
                                                         std::string name, const std::string& url,
                                                         net::ReactorPool& pool,
                                                         policy::Catalog& catalog) {
  const store::guard::GuardOptions options = GuardOptionsOf(config);
  for (const std::string& doubt : DoubtsAbout(options)) {
    Log(Level::kWarn, "questionable setting", {{"why", std::string_view(doubt)}});
  }
  const std::string what = name.empty() ? "store: " : "stores." + name + ": ";
  std::unique_ptr<DistantStore> opened(new DistantStore(std::move(name), options));
  library::BackendOptions settings = BackendOptionsOf(config, url);
  settings.spread = library::SpreadBy(catalog, url);
  auto backend = library::OpenBackend(std::move(settings), *opened->guard_);
  if (!backend.ok()) return Error{backend.error().code, what + backend.error().message};
  opened->backend_ = std::move(*backend);
  const auto patience = config.distant.required ? std::chrono::seconds(5) : std::chrono::seconds(1);
  const Status answered = library::AwaitAnswer(*opened->backend_, *opened->guard_, patience);
  if (!answered.ok()) {
    const std::string message = what + WithoutSecrets(url) + " " + answered.error().message;
    if (config.distant.required) return Error{Code::kUnavailable, message};
    Log(Level::kError, "started without the store; checks are decided by on_store_error",
        {{"error", std::string_view(message)}});
  }
  for (std::size_t i = 0; i < pool.size(); ++i) {
    boost::asio::io_context& io = pool.reactor(i).context();
    opened->guarded_.push_back(std::make_unique<store::guard::GuardedStore>(
        io, *opened->guard_, opened->backend_->NewStore(io)));
  }
  opened->prober_ = std::make_unique<store::guard::Prober>(
      pool.reactor(0).context(), *opened->guard_, *opened->guarded_.front());
  return opened;
}

void DistantStore::Close() {
  prober_.reset();
  for (const auto& store : guarded_) store->Close();
}

}  // namespace weir::app
