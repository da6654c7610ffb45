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

/// No client is refused in a trial: the report shows who would be, and nothing is logged.
struct Silent : limiter::Shared {
  Silent(const policy::LivePolicies& live, const policy::PolicyIds& ids, const Clock& clock)
      : Shared(live, ids, limiter::Fallback::Options{.clock = &clock}) {
    observe.refusals_per_second = 0;
  }
};

}  // namespace

/// Everything that a limiter needs.
struct Trial::World {
  World(std::shared_ptr<const policy::PolicySet> set, std::size_t max_keys,
        const ReplayRules& given)
      : rules(given),
        live(std::move(set)),
        engine(*Quota::TokenBucket(1, 1), EngineOptions{.max_keys = max_keys,
                                                        .keys = KeyStorage::kFingerprint,
                                                        .clock = &clock,
                                                        .on_evict = {}}),
        shared(live, ids, clock),
        limiter(shared, std::make_unique<store::memory::MemoryStore>(engine)) {
    shared.deny_unmatched = rules.deny_unmatched;
  }

  const ReplayRules rules;
  std::string domain;
  ManualClock clock;
  policy::PolicyIds ids;
  policy::LivePolicies live;
  Engine engine;
  Silent shared;
  limiter::PolicyLimiter limiter;
  // Reused between calls.
  std::vector<limiter::Check> checks;
  std::vector<std::array<policy::Entry, 5>> entries;
  std::vector<policy::Descriptor> descriptors;
  std::vector<std::string> networks;  // of IPv6 clients
};

Trial::Trial(std::unique_ptr<World> world) : world_(std::move(world)) {}
Trial::~Trial() = default;

Result<std::unique_ptr<Trial>> Trial::Open(const std::vector<std::string>& files,
                                           const ReplayRules& rules, std::size_t max_keys,
                                           const std::string& domain) {
  std::vector<policy::yaml::Problem> problems;
  std::vector<policy::Definition> definitions;
  for (const std::string& file : files) {
    for (policy::Definition& one : policy::LoadPolicyFile(file, problems, rules.lenient)) {
      definitions.push_back(std::move(one));
    }
  }
  if (!problems.empty()) return Error{Code::kInvalidArgument, policy::yaml::ToString(problems)};
  const std::string first = definitions.empty() ? "" : definitions.front().domain;
  policy::CompileOptions options{rules.default_policy, 1.0};
  options.leasing = false;  // there are no other nodes
  // The numbers of the policies must be those of the world's own list of names.
  auto world = std::make_unique<World>(
      *policy::PolicySet::Compile({}, options, *std::make_unique<policy::PolicyIds>()), max_keys,
      rules);
  auto set = policy::PolicySet::Compile(std::move(definitions), options, world->ids);
  if (!set.ok()) return set.error();
  // If there are several domains and none is the implied one, requests are taken to name the first.
  const std::string& implied = (*set)->implied_domain();
  world->domain = !domain.empty() ? domain : (*set)->HasDomain(implied) ? implied : first;
  world->live.Publish(std::move(*set));
  return std::unique_ptr<Trial>(new Trial(std::move(world)));
}

const std::string& Trial::domain() const noexcept { return world_->domain; }
std::size_t Trial::domains() const { return world_->live.Current()->directory().domains().size(); }

void Trial::Describe(std::size_t index, const access_log::Record& record) {
  World& world = *world_;
  auto& entries = world.entries[index];
  std::size_t used = 0;
  const auto add = [&](std::string_view name, std::string_view value) {
    if (!value.empty()) entries[used++] = {name, value};
  };
  const bool knows_client = world.rules.asker != Asker::kCheck;
  std::string_view ip = record.ip;
  if (knows_client && ip.find(':') != std::string_view::npos) {
    if (const auto address = IpAddress::Parse(ip)) {
      ip = world.networks[index] = ClientKey(*address, world.rules.grouping);
    }
  }
  // In the order of service/auth_question.cc, since some of Envoy's policies depend on it.
  add("ip", ip);
  add("user", record.user);
  const std::size_t subjects = used;
  add("method", record.method);
  add("route", record.route);
  if (!knows_client) add("host", record.host);
  world.descriptors[index] = policy::Descriptor(entries.data(), used);
  policy::Request& request = world.checks[index].request;
  request.domain = world.domain;
  request.descriptors = std::span(&world.descriptors[index], 1);
  if (!knows_client) return;
  request.subjects = world.descriptors[index].first(subjects);
  request.default_applies = world.rules.default_applies && !ip.empty();
}

void Trial::Count(std::size_t index, const limiter::Check& check, Nanos at) {
  const policy::Policy* const only_default = &world_->limiter.policies()->default_policy();
  if (!check.matched) ++unmatched_;
  if (std::ranges::find(check.verdicts, only_default, &limiter::PolicyVerdict::rule) !=
      check.verdicts.end()) {
    ++by_default_;
  }
  limited_by_[index].clear();
  if (check.decision.allowed()) return;
  limited_by_[index] = check.matched ? check.policy : "(unmatched: deny)";
  for (const limiter::PolicyVerdict& verdict : check.verdicts) {
    if (!verdict.shadow && !verdict.decision.allowed()) return Note(verdict.key, at);
  }
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
    world.networks.resize(count);
  }
  for (std::size_t i = 0; i < count; ++i) Describe(i, records[i]);
  limited.assign(count, false);
  limited_by_.resize(std::max(limited_by_.size(), count));
  const std::span<limiter::Check> checks(world.checks.data(), count);
  world.limiter.Decide(checks, [&] {
    for (std::size_t i = 0; i < count; ++i) {
      limited[i] = !checks[i].decision.allowed();
      Count(i, checks[i], at);
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
