#include "serve/stores.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "base/url.h"
#include "plaintext.h"
#include "store/guard/asio_timers.h"
#include "store/memory/durable_store.h"
#include "store/memory/memory_store.h"
#include "telemetry/log.h"

namespace weir::app {
namespace {

using telemetry::Level;
using telemetry::Log;

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

library::DistantStoreOptions OptionsOf(const config::Config& config,
                                       const library::StoreMember& member) {
  const config::Config::DistantStore& distant = config.distant;
  library::DistantStoreOptions options{.name = member.name,
                                       .backend = {.url = member.url,
                                                   .connections = distant.connections,
                                                   .timeout = distant.timeout,
                                                   .migrate = distant.migrate,
                                                   .refusals = distant.deny_cache != 0}};
  options.guard.timeout = distant.timeout;
  options.guard.breaker.failures = distant.breaker_failures;
  options.guard.cache.max_keys = distant.deny_cache;
  options.patience = distant.required ? std::chrono::seconds(5) : std::chrono::seconds(1);
  return options;
}

Result<std::unique_ptr<library::DistantStore>> OpenDistant(const config::Config& config,
                                                           const library::StoreMember& member,
                                                           net::ReactorPool& pool,
                                                           policy::Catalog& catalog) {
  library::DistantStoreOptions options = OptionsOf(config, member);
  for (const std::string& doubt : DoubtsAbout(options.guard)) {
    Log(Level::kWarn, "questionable setting", {{"why", std::string_view(doubt)}});
  }
  const std::string setting = member.name.empty() ? "store" : "stores." + member.name;
  const std::string what = setting + ": ";
  WarnOfPlaintext(setting, member.url);
  std::vector<boost::asio::io_context*> reactors;
  for (std::size_t i = 0; i < pool.size(); ++i) reactors.push_back(&pool.reactor(i).context());
  auto opened = library::DistantStore::Open(std::move(options), reactors, catalog);
  if (!opened.ok()) return Error{opened.error().code, what + opened.error().message};
  if (const Status& answered = (*opened)->answered(); !answered.ok()) {
    const std::string message = what + WithoutSecrets(member.url) + ": " + answered.error().message;
    if (config.distant.required || library::RefusesLogin(answered.error())) {
      return Error{Code::kUnavailable, message};
    }
    Log(Level::kError, "started without the store; on_store_error decides",
        {{"error", std::string_view(message)}});
  }
  return opened;
}

}  // namespace

Result<std::unique_ptr<Stores>> Stores::Open(const config::Config& config,
                                             const std::string& snapshot, net::ReactorPool& pool,
                                             policy::Catalog& catalog, bool leasing) {
  std::unique_ptr<Stores> stores(new Stores(config, pool));
  for (const library::StoreMember& member : library::MembersOf(config)) {
    if (member.url == "memory:") {
      if (Status opened = stores->OpenMemory(snapshot); !opened.ok()) return opened.error();
      stores->members_.push_back(nullptr);
      continue;
    }
    auto distant = OpenDistant(config, member, pool, catalog);
    if (!distant.ok()) return distant.error();
    stores->members_.push_back(distant->get());
    stores->distant_.push_back(std::move(*distant));
  }
  if (leasing) stores->OpenReactors(catalog.live());
  stores->key_reader_.emplace(
      [raw = stores.get()](const store::KeyQuery& query) { return raw->ReadKeys(query); });
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
  memory_keys_ = std::make_unique<store::memory::KeyList>(*engine_);
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
    Log(Level::kError, "journal only partly replayed; some charges may be lost",
        {{"error", std::string_view(replayed.error().message)}});
  } else if (replayed->cut > 0) {
    Log(Level::kWarn, "ignoring an incomplete record at the end of the journal",
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
    if (status.ok()) return Log(Level::kInfo, "the journal is writable again");
    Log(Level::kError, "cannot write the journal; a crash would lose charges",
        {{"error", std::string_view(status.error().message)}});
  };
  auto journal = Journal::Open(*engine_, std::move(options));
  if (!journal.ok()) return Error{journal.error().code, "journal: " + journal.error().message};
  journal_ = std::move(*journal);
  return {};
}

void Stores::OpenReactors(const policy::LivePolicies& policies) {
  leases_.emplace(store::lease::LeaseOptions{.lends = config_.region.lends});
  for (std::size_t i = 0; i < pool_.size(); ++i) {
    std::vector<std::unique_ptr<store::Store>> all;
    for (std::size_t k = 0; k < members_.size(); ++k) all.push_back(MemberStoreFor(i, k));
    std::unique_ptr<store::Store> inner = std::move(all.front());
    if (!config_.stores.empty()) {
      all.front() = std::move(inner);
      routes_.push_back(std::make_unique<library::LiveRoutes>(config_, policies));
      inner = std::make_unique<store::route::RoutingStore>(
          std::move(all),
          [routes = routes_.back().get()]() -> const store::route::Routes& {
            return routes->Current();
          },
          routing_, library::LevelPause(config_.distant.timeout));
    }
    boost::asio::io_context& io = pool_.reactor(i).context();
    leasing_.push_back(std::make_unique<store::lease::LeasingStore>(
        std::make_unique<store::guard::AsioTimers>(io), *leases_, std::move(inner)));
  }
}

std::unique_ptr<store::Store> Stores::MemberStoreFor(std::size_t reactor, std::size_t member) {
  if (members_[member] == nullptr) return MemoryStoreFor(reactor);
  return std::make_unique<library::Borrowed>(members_[member]->store(reactor));
}

std::unique_ptr<store::Store> Stores::MemoryStoreFor(std::size_t reactor) {
  if (config_.journal != config::Journal::kSync) {
    return std::make_unique<store::memory::MemoryStore>(*engine_);
  }
  return std::make_unique<store::memory::DurableStore>(pool_.reactor(reactor).context(), *engine_,
                                                       *journal_);
}

std::unique_ptr<store::Store> Stores::Take(std::size_t index) {
  if (leasing_.empty()) return MemoryStoreFor(index);
  return std::make_unique<library::Borrowed>(*leasing_[index]);
}

void Stores::Drain() {
  for (std::size_t i = 0; i < leasing_.size(); ++i) {
    boost::asio::post(pool_.reactor(i).context(), [store = leasing_[i].get()] { store->Drain(); });
  }
}

void Stores::Close() {
  if (memory_keys_) memory_keys_->Stop();  // it takes a while, and no one waits for it any more
  key_reader_.reset();
  for (const auto& distant : distant_) distant->Close();
  leasing_.clear();  // their timers are the reactors'
  snapshots_.reset();
  journal_.reset();
}

std::optional<admin::StoreHealth> Stores::health() const {
  if (only_memory()) return std::nullopt;
  admin::StoreHealth all{.up = true, .serving = true, .channel_up = true};
  auto worst = store::guard::BreakerState::kClosed;
  for (const auto& distant : distant_) {
    const store::guard::Health health = distant->guard().health();
    all.up = all.up && health.up;
    all.channel_up = all.channel_up && health.channel_up;
    worst = std::max(worst, health.breaker);
    const library::LostState lost = distant->lost_state().value_or(library::LostState());
    all.times_lost += lost.times;
    all.lost_at = std::max(all.lost_at, lost.at);
    // The error of a store that is down matters more than that of one that is back.
    if (health.last_error.empty() || (health.up && !all.last_error.empty())) continue;
    all.last_error = (distant->name().empty() ? "" : distant->name() + ": ") + health.last_error;
  }
  all.serving = all.up || !config_.distant.required;
  all.breaker = NameOf(worst);
  if (const auto sum = leases_->Sum(); sum.asks > 0) {
    all.leases = {sum.keys, sum.held, sum.local, sum.asks, sum.granted, sum.lost};
  }
  return all;
}

void Stores::Collect(telemetry::TextWriter& out) const {
  std::vector<store::guard::NamedGuard> guards;
  for (const auto& distant : distant_) guards.push_back({distant->name(), &distant->guard()});
  if (!guards.empty()) store::guard::CollectGuards(guards, out);
  library::CollectLostState(distant_, out);
  if (leases_) leases_->Collect(out);
  if (!routes_.empty()) routing_.Collect(out);
  if (engine_) admin::CollectKeys(engine_->size(), engine_->stats(), out);
}

/// The keys of one server after those of another: a cursor says which server it belongs to.
Result<store::KeyPage> Stores::ReadKeys(const store::KeyQuery& query) const {
  const auto read = [this](std::size_t member, const store::KeyQuery& inner) {
    return members_[member] == nullptr ? Result<store::KeyPage>(memory_keys_->Read(inner))
                                       : members_[member]->ReadKeys(inner);
  };
  if (members_.size() == 1) return read(0, query);
  std::size_t member = 0;
  store::KeyQuery inner = query;
  if (!query.cursor.empty()) {
    const auto [end, problem] =
        std::from_chars(query.cursor.data(), query.cursor.data() + query.cursor.size(), member);
    if (problem != std::errc() || member >= members_.size()) {
      return Error{Code::kInvalidArgument, "cursor: must be one that this list returned"};
    }
    inner.cursor = query.cursor.substr(
        std::min<std::size_t>(query.cursor.size(), end - query.cursor.data() + 1));
  }
  Result<store::KeyPage> page = read(member, inner);
  if (!page.ok()) return page;
  const bool more = !page->next.empty();
  if (more || member + 1 < members_.size()) {
    page->next = std::to_string(more ? member : member + 1) + ":" + page->next;
  }
  return page;
}

std::size_t Stores::CurrentReactor() const {
  for (std::size_t i = 0; i < pool_.size(); ++i) {
    if (pool_.reactor(i).context().get_executor().running_in_this_thread()) return i;
  }
  std::abort();  // only reactors call this
}

void Stores::ListKeys(store::KeyQuery query, KeyReader::Done done) {
  key_reader_->Ask(std::move(query), pool_.reactor(CurrentReactor()).context(), std::move(done));
}

store::FindHeld Stores::FindHeld() {
  if (only_memory()) return nullptr;
  return [this](std::vector<std::string> buckets, store::HeldFound done) {
    struct Search {
      std::vector<store::HeldHere> found;  // used by the calling thread, like the next
      std::size_t left = 0;
      std::vector<std::string> buckets;
      store::HeldFound done;
    };
    const auto search = std::make_shared<Search>();
    *search = {std::vector<store::HeldHere>(buckets.size()), leasing_.size(), std::move(buckets),
               std::move(done)};
    boost::asio::io_context& home = pool_.reactor(CurrentReactor()).context();
    for (std::size_t i = 0; i < leasing_.size(); ++i) {
      boost::asio::post(pool_.reactor(i).context(), [search, &home, leasing = leasing_[i].get()] {
        std::vector<store::HeldHere> held;
        for (const std::string& bucket : search->buckets) held.push_back(leasing->Find(bucket));
        boost::asio::post(home, [search, held = std::move(held)] {
          for (std::size_t k = 0; k < held.size(); ++k) search->found[k].Add(held[k]);
          if (--search->left == 0) search->done(search->found);
        });
      });
    }
  };
}

}  // namespace weir::app
