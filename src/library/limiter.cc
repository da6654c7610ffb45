#include "weir/limiter.h"

#include <utility>

#include "base/error.h"
#include "config/config.h"
#include "library/limiter_core.h"
#include "library/store_routes.h"
#include "store/reserve/reservation.h"

namespace weir {
namespace {

using store::Op;

constexpr std::size_t kMaxKeyBytes = 1024;
constexpr std::size_t kMaxEntries = 16;

/// The same bounds as the service's protocols have.
Status Validate(const LimitRequest& request) {
  if (request.cost < 0) return Invalid("cost: must not be negative");
  if (request.key.size() > kMaxKeyBytes) return Invalid("key: longer than 1024 bytes");
  if (!request.key.empty()) return {};
  if (request.entries.empty()) return Invalid("expected a key or entries");
  if (request.entries.size() > kMaxEntries) return Invalid("entries: more than 16");
  if (request.domain.size() > policy::kMaxNameBytes)
    return Invalid("domain: longer than 256 bytes");
  for (const LimitEntry& entry : request.entries) {
    if (entry.key.empty() || entry.key.size() > policy::kMaxNameBytes) {
      return Invalid("entries: a key must have 1 to 256 bytes");
    }
    if (entry.value.size() > kMaxKeyBytes)
      return Invalid("entries: a value is longer than 1024 bytes");
  }
  return {};
}

Status Validate(const LimiterOptions& options) {
  if (options.timeout.count() < 1) return Invalid("timeout: must be at least 1 ms");
  if (options.connect_timeout.count() < 0) return Invalid("connect_timeout: must not be negative");
  if (options.max_keys == 0) return Invalid("max_keys: must be at least 1");
  if (options.connections == 0 || options.connections > 1000) {
    return Invalid("connections: must be 1 to 1000");
  }
  return {};
}

Result<LimitAnswer> Answered(Result<Limiter::Core::Told> told) {
  if (!told.ok()) return told.error();
  return std::move(told->answer);
}

LimiterOptions OptionsOf(const config::Config& config) {
  LimiterOptions options;
  options.mode = config.embedded.service_mode ? LimiterOptions::Mode::kService
                                              : LimiterOptions::Mode::kEmbedded;
  options.service = config.embedded.service;
  options.service_key = config.embedded.service_key;
  options.service_ca = config.embedded.service_ca;
  options.store = config.store;
  options.policies = config.policies;
  // Without a distant store the service keeps its policies in its own file.
  options.policy_store = config.policy_store == "sqlite:" ? "" : config.policy_store;
  options.max_keys = config.max_keys;
  options.migrate = config.distant.migrate;
  options.timeout = config.distant.timeout;
  if (!config.distant.required) options.connect_timeout = std::chrono::milliseconds(0);
  return options;
}

/// By the rules of the configuration: which stores there are, and which one is for policies that do
/// not name one.
Result<config::Config> PlacesOf(const LimiterOptions& options) {
  std::vector<config::Override> overrides;
  std::string stores;
  for (const std::string& store : options.stores) stores += (stores.empty() ? "" : ",") + store;
  if (!stores.empty()) overrides.push_back({"stores", stores, "stores"});
  if (options.stores.empty() || options.store != "memory:") {
    overrides.push_back({"store", options.store, "store"});
  }
  std::vector<policy::yaml::Problem> problems;
  config::Config config = config::Load("", overrides, problems);
  if (!problems.empty()) return Invalid(policy::yaml::ToString(problems));
  return config;
}

}  // namespace

Limiter::Limiter(std::unique_ptr<Core> core) noexcept : core_(std::move(core)) {}
Limiter::~Limiter() = default;
Limiter::Limiter(Limiter&&) noexcept = default;
Limiter& Limiter::operator=(Limiter&&) noexcept = default;

Result<Limiter> Limiter::Open(LimiterOptions options) {
  if (Status valid = Validate(options); !valid.ok()) return valid.error();
  if (options.mode == LimiterOptions::Mode::kService) {
    auto core = library::OpenService(std::move(options));
    if (!core.ok()) return core.error();
    return Limiter(std::move(*core));
  }
  Result<config::Config> places = PlacesOf(options);
  if (!places.ok()) return places.error();
  library::EmbeddedSettings settings;
  settings.compile.stores = library::StoreNames(*places);
  settings.places = std::move(*places);
  auto core = library::OpenEmbedded(std::move(options), std::move(settings));
  if (!core.ok()) return core.error();
  return Limiter(std::move(*core));
}

Result<Limiter> Limiter::FromConfig(const std::string& file) {
  std::vector<policy::yaml::Problem> problems;
  const config::Environment environment = config::ReadEnvironment();
  config::Config config = config::Load(file, environment.overrides, problems);
  if (!problems.empty()) return Invalid(policy::yaml::ToString(problems));
  LimiterOptions options = OptionsOf(config);
  if (Status valid = Validate(options); !valid.ok()) return valid.error();
  library::EmbeddedSettings settings;
  settings.compile = {config.default_policy, config.local_share, config.lenient,
                      library::StoreNames(config)};
  settings.compile.region = {config.region.term, config.region.lends};
  settings.connections = config.distant.connections;
  settings.breaker_failures = config.distant.breaker_failures;
  settings.max_refusals = config.distant.deny_cache;
  settings.places = std::move(config);
  auto core = options.mode == LimiterOptions::Mode::kService
                  ? library::OpenService(std::move(options))
                  : library::OpenEmbedded(std::move(options), std::move(settings));
  if (!core.ok()) return core.error();
  return Limiter(std::move(*core));
}

Result<LimitAnswer> Limiter::Check(const LimitRequest& request) {
  if (Status valid = Validate(request); !valid.ok()) return valid.error();
  return Answered(core_->Ask({.op = Op::kCharge, .request = request}));
}

Result<LimitAnswer> Limiter::Check(std::string_view key, std::int64_t cost) {
  return Check(LimitRequest{.key = key, .cost = cost});
}

Result<LimitAnswer> Limiter::Peek(const LimitRequest& request) {
  if (Status valid = Validate(request); !valid.ok()) return valid.error();
  return Answered(core_->Ask({.op = Op::kPeek, .request = request}));
}

Result<LimitAnswer> Limiter::Overdraw(const LimitRequest& request) {
  if (Status valid = Validate(request); !valid.ok()) return valid.error();
  return Answered(core_->Ask({.op = Op::kOverdraw, .request = request}));
}

Result<LimitAnswer> Limiter::Refund(const LimitRequest& request) {
  if (request.cost < 1) return Invalid("cost: must be at least 1");
  if (Status valid = Validate(request); !valid.ok()) return valid.error();
  return Answered(core_->Ask({.op = Op::kRefund, .request = request}));
}

Result<bool> Limiter::Release(const LimitRequest& request, std::string_view leases) {
  if (Status valid = Validate(request); !valid.ok()) return valid.error();
  const Result<Core::Told> told =
      core_->Ask({.op = Op::kRelease, .request = request, .leases = leases});
  if (!told.ok()) return told.error();
  return told->applied;
}

Result<LimitReservation> Limiter::Reserve(const LimitRequest& request,
                                          std::chrono::milliseconds lasts) {
  if (request.cost < 1) return Invalid("cost: must be at least 1");
  if (lasts < store::reserve::kShortest || lasts > store::reserve::kLongest) {
    return Invalid("lasts: must be 1 ms to 24 hours");
  }
  if (Status valid = Validate(request); !valid.ok()) return valid.error();
  Result<Core::Told> told = core_->Ask({.op = Op::kCharge, .request = request, .reserve = lasts});
  if (!told.ok()) return told.error();
  return LimitReservation{std::move(told->answer), std::move(told->reservation)};
}

Result<LimitSettlement> Limiter::Settle(std::string_view reservation, std::int64_t cost) {
  if (cost < 0) return Invalid("cost: must not be negative");
  if (reservation.empty() || reservation.size() > store::reserve::kMaxText) {
    return Invalid("reservation: expected what Reserve returned");
  }
  Result<Core::Told> told =
      core_->Ask({.op = Op::kSettle, .request = {.cost = cost}, .settles = reservation});
  if (!told.ok()) return told.error();
  return LimitSettlement{told->applied, std::move(told->answer)};
}

LimiterPolicies Limiter::policies() const { return core_->policies(); }
Status Limiter::health() const { return core_->health(); }

}  // namespace weir
