#include "serve/stores.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "base/url.h"
#include "drivers/redis/url.h"
#include "policy/cluster_tags.h"
#include "policy/unreachable.h"
#include "store/guard/asio_timers.h"
#include "store/memory/durable_store.h"
#include "store/memory/memory_store.h"
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

library::BackendOptions BackendOptionsOf(const config::Config& config) {
  return {.url = config.store,
          .connections = config.distant.connections,
          .timeout = config.distant.timeout,
          .migrate = config.distant.migrate,
          .refusals = config.distant.deny_cache != 0};
}

std::string_view NameOf(store::guard::BreakerState state) {
  switch (state) {
    case store::guard::BreakerState::kClosed:
      return "closed";
    case store::guard::BreakerState::kHalfOpen:
      return "half-open";
    case store::guard::BreakerState::kOpen:
      return "open";
  }
  return {};
}

/// A store that belongs to Stores, in the place of one that belongs to a limiter.
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

}  // namespace

Result<std::unique_ptr<Stores>> Stores::Open(const config::Config& config,
                                             const std::string& snapshot, net::ReactorPool& pool,
                                             policy::Catalog& catalog) {
  std::unique_ptr<Stores> stores(new Stores(config, pool));
  if (config.store == "memory:") {
    if (Status opened = stores->OpenMemory(snapshot); !opened.ok()) return opened.error();
  } else if (Status opened = stores->OpenDistant(catalog); !opened.ok()) {
    return opened.error();
  }
  return stores;
}

Stores::~Stores() { Close(); }

Status Stores::OpenMemory(const std::string& snapshot) {
  engine_.emplace(*Quota::TokenBucket(1, 1),
                  EngineOptions{.max_keys = config_.max_keys,
                                .keys = KeyStorage::kText,
                                .clock = nullptr,
                                .on_evict = {},
                                .track_changes = config_.journal != config::Journal::kOff});
  if (const Status loaded = store::memory::LoadSnapshot(*engine_, snapshot); !loaded.ok()) {
    if (loaded.error().code != Code::kNotFound) {
      Log(Level::kError, "snapshot not restored; starting with empty limits",
          {{"error", std::string_view(loaded.error().message)}});
    }
  }
  if (Status opened = OpenJournal(snapshot); !opened.ok()) return opened;
  if (config_.cleanup.interval.count() > 0) {
    sweeper_ = std::make_unique<store::memory::Sweeper>(*engine_, config_.cleanup.interval);
  }
  store::memory::SnapshotKeeper::Options options;
  options.path = snapshot;
  options.interval = config_.snapshot.interval;
  options.journal = journal_.get();
  options.on_saved = [](const Status& saved) {
    if (saved.ok()) return;
    Log(Level::kError, "snapshot not saved", {{"error", std::string_view(saved.error().message)}});
  };
  snapshots_ = std::make_unique<store::memory::SnapshotKeeper>(*engine_, std::move(options));
  return {};
}

Status Stores::OpenJournal(const std::string& snapshot) {
  using store::memory::Journal;
  const std::string path = snapshot + ".journal";
  const auto replayed = Journal::Replay(*engine_, path);
  if (!replayed.ok()) {
    Log(Level::kError, "journal not replayed to its end; limits may have forgotten charges",
        {{"error", std::string_view(replayed.error().message)}});
  } else if (replayed->cut > 0) {
    Log(Level::kWarn, "journal ends in an incomplete record, which is ignored",
        {{"bytes", replayed->cut}});
  }
  if (config_.journal == config::Journal::kOff) {
    // Old files would bring back an old state at every start.
    if (replayed.ok() && replayed->batches == 0) return {};
    if (Status saved = store::memory::SaveSnapshot(*engine_, snapshot); !saved.ok()) return saved;
    return Journal::Drop(path);
  }
  Journal::Options options;
  options.path = path;
  options.sync = config_.journal == config::Journal::kSync;
  options.on_status = [](const Status& status) {
    if (status.ok()) return Log(Level::kInfo, "journal is written again");
    Log(Level::kError, "cannot write the journal; a crash would forget charges",
        {{"error", std::string_view(status.error().message)}});
  };
  auto journal = Journal::Open(*engine_, std::move(options));
  if (!journal.ok()) return Error{journal.error().code, "journal: " + journal.error().message};
  journal_ = std::move(*journal);
  return {};
}

Status Stores::OpenDistant(policy::Catalog& catalog) {
  const store::guard::GuardOptions options = GuardOptionsOf(config_);
  for (const std::string& doubt : DoubtsAbout(options)) {
    Log(Level::kWarn, "questionable setting", {{"why", std::string_view(doubt)}});
  }
  guard_.emplace(options);
  library::BackendOptions distant = BackendOptionsOf(config_);
  distant.spread = library::SpreadBy(catalog, config_.store);
  auto backend = library::OpenBackend(std::move(distant), *guard_);
  if (!backend.ok()) return Error{backend.error().code, "store: " + backend.error().message};
  backend_ = std::move(*backend);
  const auto patience =
      config_.distant.required ? std::chrono::seconds(5) : std::chrono::seconds(1);
  if (Status answered = library::AwaitAnswer(*backend_, *guard_, patience); !answered.ok()) {
    const std::string message =
        "store: " + WithoutSecrets(config_.store) + " " + answered.error().message;
    if (config_.distant.required) return Error{Code::kUnavailable, message};
    Log(Level::kError, "started without the store; checks are decided by on_store_error",
        {{"error", std::string_view(message)}});
  }
  for (std::size_t i = 0; i < pool_.size(); ++i) {
    boost::asio::io_context& io = pool_.reactor(i).context();
    guarded_.push_back(
        std::make_unique<store::guard::GuardedStore>(io, *guard_, backend_->NewStore(io)));
  }
  leases_.emplace(store::lease::LeaseOptions{});
  for (std::size_t i = 0; i < pool_.size(); ++i) {
    boost::asio::io_context& io = pool_.reactor(i).context();
    leasing_.push_back(std::make_unique<store::lease::LeasingStore>(
        std::make_unique<store::guard::AsioTimers>(io), *leases_,
        std::make_unique<Borrowed>(*guarded_[i])));
  }
  prober_ = std::make_unique<store::guard::Prober>(pool_.reactor(0).context(), *guard_,
                                                   *guarded_.front());
  key_reader_.emplace([this](const store::KeyQuery& query) { return backend_->ReadKeys(query); });
  return {};
}

std::unique_ptr<store::Store> Stores::Take(std::size_t index) {
  if (engine_ && config_.journal == config::Journal::kSync) {
    return std::make_unique<store::memory::DurableStore>(pool_.reactor(index).context(), *engine_,
                                                         *journal_);
  }
  if (engine_) return std::make_unique<store::memory::MemoryStore>(*engine_);
  return std::make_unique<Borrowed>(*leasing_[index]);
}

void Stores::Drain() {
  for (std::size_t i = 0; i < leasing_.size(); ++i) {
    boost::asio::post(pool_.reactor(i).context(), [store = leasing_[i].get()] { store->Drain(); });
  }
}

void Stores::Close() {
  key_reader_.reset();
  prober_.reset();
  for (const auto& store : guarded_) store->Close();
  leasing_.clear();  // their timers are the reactors'
  snapshots_.reset();
  journal_.reset();
}

std::optional<admin::StoreHealth> Stores::health() const {
  if (!guard_) return std::nullopt;
  const store::guard::Health health = guard_->health();
  std::optional<admin::LeaseTotals> leases;
  if (const auto sum = leases_->Sum(); sum.asks > 0) {
    leases = {sum.keys, sum.held, sum.local, sum.asks, sum.granted, sum.lost};
  }
  return admin::StoreHealth{
      .up = health.up,
      .serving = health.up || !config_.distant.required,
      .breaker = NameOf(health.breaker),
      .channel_up = health.channel_up,
      .last_error = health.last_error,
      .leases = leases,
  };
}

void Stores::Collect(telemetry::TextWriter& out) const {
  if (guard_) {
    guard_->Collect(out);
    return leases_->Collect(out);
  }
  admin::CollectKeys(engine_->size(), engine_->stats(), out);
}

// The smallest keys after the cursor, whatever order the table has them in.
store::KeyPage Stores::ListMemory(const store::KeyQuery& query) const {
  const std::size_t limit = query.limit + 1;  // one more tells whether there is a next page
  store::KeyPage page;
  std::vector<store::HeldKey>& keys = page.keys;
  const auto less = [](const store::HeldKey& a, const store::HeldKey& b) { return a.key < b.key; };
  engine_->Visit([&](const KeyView& view) {
    if (view.key <= query.cursor || !view.key.starts_with(query.prefix)) return;
    if (keys.size() == limit && view.key >= keys.front().key) return;
    keys.push_back({std::string(view.key), view.algorithm});
    std::push_heap(keys.begin(), keys.end(), less);
    if (keys.size() <= limit) return;
    std::pop_heap(keys.begin(), keys.end(), less);
    keys.pop_back();
  });
  std::sort_heap(keys.begin(), keys.end(), less);
  if (keys.size() == limit) {
    keys.pop_back();
    page.next = keys.back().key;
  }
  return page;
}

void Stores::ListKeys(store::KeyQuery query, KeyReader::Done done) {
  if (engine_) return done(ListMemory(query));
  for (std::size_t i = 0; i < pool_.size(); ++i) {
    boost::asio::io_context& io = pool_.reactor(i).context();
    if (!io.get_executor().running_in_this_thread()) continue;
    return key_reader_->Ask(std::move(query), io, std::move(done));
  }
  std::abort();  // only reactors ask
}

std::vector<std::string> Misfits(const config::Config& config, const policy::PolicySet& policies) {
  std::vector<std::string> misfits = policy::Unreachable(policies);
  if (!config.store.starts_with("redis")) return misfits;
  const auto address = redis::ParseUrl(config.store);
  if (!address.ok() || !address->cluster || address->tag.empty()) return misfits;
  for (std::string& conflict : policy::TagConflicts(policies, address->tag)) {
    misfits.push_back(std::move(conflict));
  }
  return misfits;
}

}  // namespace weir::app
