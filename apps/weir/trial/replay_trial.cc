#include <algorithm>
#include <array>
#include <utility>

#include "policy/policy_file.h"
#include "store/memory/memory_store.h"
#include "trial/replay.h"

namespace weir::app {

void Timeline::Add(Nanos at, bool limited, bool limited_2) {
  Step& step = steps_[at / width_];
  ++step.requests;
  step.limited += limited ? 1 : 0;
  step.limited_2 += limited_2 ? 1 : 0;
  if (steps_.size() > kMaxSteps) Widen();
}

void Timeline::Widen() {
  width_ *= 2;
  std::map<std::int64_t, Step> wider;
  for (const auto& [number, step] : steps_) {
    Step& sum = wider[number / 2];
    sum.requests += step.requests;
    sum.limited += step.limited;
    sum.limited_2 += step.limited_2;
  }
  steps_ = std::move(wider);
}

Timeline Timeline::Coarsened(std::size_t most) const {
  Timeline coarse = *this;
  const auto span = [&coarse] {
    return coarse.steps_.rbegin()->first - coarse.steps_.begin()->first + 1;
  };
  while (!coarse.steps_.empty() && span() > static_cast<std::int64_t>(most)) coarse.Widen();
  return coarse;
}

namespace {

/// Nobody is refused in a trial: the report says who would be, the log says nothing.
struct Silent : limiter::Shared {
  Silent(const policy::LivePolicies& live, const policy::PolicyIds& ids, const Clock& clock)
      : Shared(live, ids, limiter::Fallback::Options{.clock = &clock}) {
    observe.refusals_per_second = 0;
  }
};

}  // namespace

/// Everything behind a limiter.
struct Trial::World {
  World(std::shared_ptr<const policy::PolicySet> set, std::size_t max_keys, std::string given)
      : domain(std::move(given)),
        live(std::move(set)),
        engine(*Quota::TokenBucket(1, 1), EngineOptions{.max_keys = max_keys,
                                                        .keys = KeyStorage::kFingerprint,
                                                        .clock = &clock,
                                                        .on_evict = {}}),
        shared(live, ids, clock),
        limiter(shared, std::make_unique<store::memory::MemoryStore>(engine)) {}

  std::string domain;
  ManualClock clock;
  policy::PolicyIds ids;
  policy::LivePolicies live;
  Engine engine;
  Silent shared;
  limiter::PolicyLimiter limiter;
  // Reused from call to call.
  std::vector<limiter::Check> checks;
  std::vector<std::array<policy::Entry, 5>> entries;
  std::vector<policy::Descriptor> descriptors;
};

Trial::Trial(std::unique_ptr<World> world) : world_(std::move(world)) {}
Trial::~Trial() = default;

Result<std::unique_ptr<Trial>> Trial::Open(const std::vector<std::string>& files,
                                           std::size_t max_keys, std::string domain) {
  std::vector<policy::yaml::Problem> problems;
  std::vector<policy::Definition> definitions;
  for (const std::string& file : files) {
    for (policy::Definition& one : policy::LoadPolicyFile(file, problems)) {
      definitions.push_back(std::move(one));
    }
  }
  if (!problems.empty()) return Error{Code::kInvalidArgument, policy::yaml::ToString(problems)};
  if (domain.empty() && !definitions.empty()) domain = definitions.front().domain;
  policy::CompileOptions options{policy::DefaultPolicy(), 1.0};
  options.leasing = false;  // there are no other nodes
  // The numbers of the policies must be those of the world's own list of names.
  auto world = std::make_unique<World>(
      *policy::PolicySet::Compile({}, options, *std::make_unique<policy::PolicyIds>()), max_keys,
      std::move(domain));
  auto set = policy::PolicySet::Compile(std::move(definitions), options, world->ids);
  if (!set.ok()) return set.error();
  world->live.Publish(std::move(*set));
  return std::unique_ptr<Trial>(new Trial(std::move(world)));
}

void Trial::Decide(Nanos at, const std::vector<access_log::Record>& records,
                   std::vector<bool>& limited) {
  World& world = *world_;
  world.clock.Set(at);
  const std::size_t count = records.size();
  if (world.checks.size() < count) {
    world.checks.resize(count);
    world.entries.resize(count);
    world.descriptors.resize(count);
  }
  for (std::size_t i = 0; i < count; ++i) {
    const access_log::Record& record = records[i];
    std::size_t used = 0;
    const auto add = [&](std::string_view name, std::string_view value) {
      if (!value.empty()) world.entries[i][used++] = {name, value};
    };
    add("ip", record.ip);
    add("route", record.route);
    add("method", record.method);
    add("user", record.user);
    add("host", record.host);
    world.descriptors[i] = policy::Descriptor(world.entries[i].data(), used);
    world.checks[i].request.domain = world.domain;
    world.checks[i].request.descriptors = std::span(&world.descriptors[i], 1);
  }
  limited.assign(count, false);
  limited_by_.resize(std::max(limited_by_.size(), count));
  const std::span<limiter::Check> checks(world.checks.data(), count);
  world.limiter.Decide(checks, [&] {
    for (std::size_t i = 0; i < count; ++i) {
      if (checks[i].verdicts.empty()) ++unmatched_;
      limited_by_[i].clear();
      if (checks[i].decision.allowed()) continue;
      limited[i] = true;
      limited_by_[i] = checks[i].policy;
      for (const limiter::PolicyVerdict& verdict : checks[i].verdicts) {
        if (!verdict.shadow && !verdict.decision.allowed()) {
          Note(verdict.key, at);
          break;
        }
      }
    }
  });
}

bool Trial::MatchesOn(std::string_view entry) const {
  const auto set = world_->live.Current();
  const auto asks = [entry](const policy::Policy& policy) {
    return std::ranges::any_of(policy.definition.match, [entry](const policy::EntryMatch& match) {
      return match.name == entry;
    });
  };
  return std::ranges::any_of(set->policies(), asks);
}

void Trial::Note(std::string_view key, Nanos at) {
  std::string name(key);
  auto found = limited_.find(name);
  if (found == limited_.end()) {
    if (limited_.size() >= kMaxLimitedKeys) name = "(other keys)";
    found = limited_.try_emplace(std::move(name), Times{0, at, at}).first;
  }
  ++found->second.count;
  found->second.last = at;
}

limiter::CheckCounts Trial::Checks() const { return world_->shared.counters.Checks(); }
std::vector<limiter::PolicyCounts> Trial::Policies() const {
  return world_->shared.counters.Policies();
}
std::uint64_t Trial::evicted_active() const { return world_->engine.stats().evicted_active; }

std::vector<Trial::LimitedKey> Trial::TopLimited(std::size_t n) const {
  std::vector<LimitedKey> keys;
  keys.reserve(limited_.size());
  for (const auto& [key, times] : limited_) {
    keys.push_back({key, times.count, times.first, times.last});
  }
  n = std::min(n, keys.size());
  std::partial_sort(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(n), keys.end(),
                    [](const LimitedKey& a, const LimitedKey& b) {
                      return a.count != b.count ? a.count > b.count : a.key < b.key;
                    });
  keys.resize(n);
  return keys;
}

}  // namespace weir::app
