// How a check works: the request's identities (address, API key, user, route) are found once, each
// rule that applies turns them into a key, and all keys are charged together or not at all.

#include "weir/filter.h"

#include <algorithm>
#include <array>

#include "algorithm/stricter.h"
#include "base/error.h"
#include "base/ip.h"
#include "filter/client_address.h"
#include "filter/headers.h"
#include "filter/route.h"

namespace weir {

namespace {

constexpr std::size_t kMaxRules = 64;
/// Longer identities are cut: one request must not make us store an arbitrary amount.
constexpr std::size_t kMaxValue = 256;
constexpr std::array<std::string_view, 4> kEntryNames = {"ip", "api_key", "user", "route"};

/// The identities of one request, in the order in which keys name them; empty means absent.
using Identities = std::array<std::string_view, 4>;

constexpr std::size_t Index(LimitBy by) noexcept { return static_cast<std::size_t>(by); }

/// `|` separates the parts of a key, so it must not occur in one.
void AppendValue(std::string& key, std::string_view value) {
  for (const char c : value.substr(0, kMaxValue)) {
    if (c == '|') {
      key += "%7C";
    } else if (c == '%') {
      key += "%25";
    } else {
      key += c;
    }
  }
}

Status Validate(const FilterOptions& options) {
  if (options.rules.empty()) return Invalid("rules: give at least one");
  if (options.rules.size() > kMaxRules) return Invalid("rules: more than 64");
  if (options.ipv4_prefix < 0 || options.ipv4_prefix > 32)
    return Invalid("ipv4_prefix: must be 0 to 32");
  if (options.ipv6_prefix < 0 || options.ipv6_prefix > 128) {
    return Invalid("ipv6_prefix: must be 0 to 128");
  }
  for (std::size_t i = 0; i < options.rules.size(); ++i) {
    const FilterRule& rule = options.rules[i];
    const std::string field = "rules[" + std::to_string(i) + "].";
    if (rule.name.empty()) return Invalid(field + "name: is empty");
    if (rule.by.empty()) return Invalid(field + "by: say what identifies a client");
    if (rule.cost < 1) return Invalid(field + "cost: must be at least 1");
    const auto same =
        std::count_if(options.rules.begin(), options.rules.end(),
                      [&](const FilterRule& other) { return other.name == rule.name; });
    if (same > 1) return Invalid(field + "name: \"" + rule.name + "\" is used twice");
  }
  return {};
}

/// The key's route part for this request, empty if the rule does not apply to it.
std::string_view MatchRoute(const FilterRule& rule, std::string_view route) noexcept {
  const std::string_view pattern = rule.route;
  if (pattern.empty()) return route;
  if (pattern.back() != '*') return route == pattern ? route : std::string_view();
  return route.starts_with(pattern.substr(0, pattern.size() - 1)) ? pattern : std::string_view();
}

/// Whether the rule uses the route at all.
bool LooksAtRoute(const FilterRule& rule) noexcept {
  return !rule.route.empty() ||
         std::find(rule.by.begin(), rule.by.end(), LimitBy::kRoute) != rule.by.end();
}

/// Writes `<rule>\n<key>`: two rules never share a quota. False if the rule does not apply.
bool BuildKey(const FilterRule& rule, Identities identities, std::string& key) {
  identities[Index(LimitBy::kRoute)] = MatchRoute(rule, identities[Index(LimitBy::kRoute)]);
  if (!rule.route.empty() && identities[Index(LimitBy::kRoute)].empty()) return false;
  key = rule.name;
  char separator = '\n';
  for (std::size_t i = 0; i < identities.size(); ++i) {
    const auto named = [i](LimitBy by) { return Index(by) == i; };
    if (std::none_of(rule.by.begin(), rule.by.end(), named)) continue;
    if (identities[i].empty()) return false;
    key += separator;
    key.append(kEntryNames[i]).append(":");
    AppendValue(key, identities[i]);
    separator = '|';
  }
  return true;
}

/// The memory of one check, reused between checks. One per thread.
struct Scratch {
  std::vector<std::string> keys;
  std::vector<Ask> asks;
  std::vector<filter::Applied> applied;
  std::vector<const FilterRule*> rules;
  std::vector<Decision> decisions;
  filter::Routes routes;

  static Scratch& Cleared(std::size_t rules) {
    thread_local Scratch scratch;
    if (scratch.keys.size() < rules * filter::Routes::kMax) {
      scratch.keys.resize(rules * filter::Routes::kMax);
    }
    scratch.asks.clear();
    scratch.applied.clear();
    scratch.rules.clear();
    return scratch;
  }
};

}  // namespace

struct Filter::State {
  State(FilterOptions given, std::vector<IpNetwork> networks)
      : options(std::move(given)),
        trusted(std::move(networks)),
        clock(options.engine.clock != nullptr ? options.engine.clock : &SystemClock::Get()),
        engine(options.rules.front().quota, options.engine) {}

  std::string_view Header(const FilterRequest& request, std::string_view name) const {
    if (!request.header || name.empty()) return {};
    return request.header(name, 0).value_or(std::string_view());
  }

  /// If there are two lines, the application behind the filter may use the other one.
  bool Doubled(const FilterRequest& request, std::string_view name) const {
    return request.header && !name.empty() && request.header(name, 1).has_value();
  }

  /// Why the request is ambiguous; null if it is not. Leaves its routes in `routes`.
  const char* Refusal(const FilterRequest& request, filter::Routes& routes) const {
    if (Doubled(request, options.api_key_header) ||
        (!options.user && Doubled(request, options.user_header))) {
      return "a header field that identifies the client was sent more than once";
    }
    return routes.Read(request.target);
  }

  FilterVerdict Malformed(const FilterRequest& request, const char* why) const {
    FilterVerdict verdict;
    verdict.allowed = false;
    verdict.status = 400;
    const bool json = filter::WantsJson(Header(request, "Accept"));
    verdict.content_type = json ? "application/json" : "text/plain; charset=utf-8";
    verdict.body = json ? filter::ErrorJson(400, why, clock->Now()) : std::string(why);
    return verdict;
  }

  /// Collects what the request is charged with: each rule once for every name of its route.
  void Collect(Identities identities, Scratch& scratch) const {
    std::size_t used = 0;
    for (const FilterRule& rule : options.rules) {
      const std::size_t first = used;
      const auto names = scratch.routes.names();
      const std::size_t readings = LooksAtRoute(rule) ? std::max<std::size_t>(names.size(), 1) : 1;
      for (std::size_t i = 0; i < readings; ++i) {
        identities[Index(LimitBy::kRoute)] = names.empty() ? std::string_view() : names[i];
        std::string& key = scratch.keys[used];
        if (!BuildKey(rule, identities, key)) continue;
        const auto begin = scratch.keys.begin();
        if (std::find(begin + static_cast<std::ptrdiff_t>(first),
                      begin + static_cast<std::ptrdiff_t>(used),
                      key) != begin + static_cast<std::ptrdiff_t>(used)) {
          continue;
        }
        ++used;
        scratch.asks.push_back({key, rule.cost, &rule.quota});
        scratch.applied.push_back({rule.name, &rule.quota, {}});
        scratch.rules.push_back(&rule);
      }
    }
  }

  std::string Client(const FilterRequest& request) const {
    const auto peer = IpAddress::Parse(request.peer);
    if (!peer) return {};
    const auto forwarded = [&](std::size_t n) -> std::optional<std::string_view> {
      return request.header ? request.header("X-Forwarded-For", n) : std::nullopt;
    };
    return ClientKey(filter::ResolveClient(*peer, forwarded, trusted),
                     {options.ipv4_prefix, options.ipv6_prefix});
  }

  std::string User(const FilterRequest& request) const {
    if (options.user) return options.user(request);
    return std::string(Header(request, options.user_header));
  }

  FilterOptions options;
  std::vector<IpNetwork> trusted;
  const Clock* clock;
  Engine engine;
};

Filter::Filter(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Filter::~Filter() = default;
Filter::Filter(Filter&&) noexcept = default;
Filter& Filter::operator=(Filter&&) noexcept = default;

Engine& Filter::engine() noexcept { return state_->engine; }

Result<Filter> Filter::Create(FilterOptions options) {
  if (auto status = Validate(options); !status) return status.error();
  auto trusted = ParseNetworks(options.trusted_proxies);
  if (!trusted) return Invalid("trusted_proxies: " + trusted.error().message);
  return Filter(std::make_unique<State>(std::move(options), std::move(*trusted)));
}

FilterVerdict Filter::Check(const FilterRequest& request) {
  const FilterOptions& options = state_->options;
  Scratch& scratch = Scratch::Cleared(options.rules.size());
  if (const char* why = state_->Refusal(request, scratch.routes)) {
    return state_->Malformed(request, why);
  }
  const std::string client = state_->Client(request);
  const std::string user = state_->User(request);
  state_->Collect({client, state_->Header(request, options.api_key_header), user, {}}, scratch);
  FilterVerdict verdict;
  if (scratch.asks.empty()) return verdict;

  scratch.decisions.resize(scratch.asks.size());
  verdict.allowed = state_->engine.TryAcquireAll(scratch.asks, scratch.decisions);
  std::size_t strictest = 0;
  for (std::size_t i = 0; i < scratch.asks.size(); ++i) {
    scratch.applied[i].decision = scratch.decisions[i];
    if (verdict.allowed && scratch.decisions[i].lease != 0) {
      const FilterRule* const rule = scratch.rules[i];
      verdict.leases.push_back({static_cast<std::size_t>(rule - options.rules.data()),
                                scratch.keys[i], scratch.decisions[i].lease});
    }
    if (algorithm::Stricter(scratch.decisions[i], scratch.decisions[strictest])) strictest = i;
  }
  verdict.decision = scratch.decisions[strictest];
  verdict.rule = scratch.applied[strictest].policy;
  verdict.key = scratch.keys[strictest].substr(verdict.rule.size() + 1);
  verdict.headers.reserve(6);
  filter::GiveLimitHeaders(scratch.applied, verdict.decision,
                           {options.x_ratelimit_headers, options.ietf_headers},
                           [&](std::string_view name, std::string_view value) {
                             verdict.headers.emplace_back(name, value);
                           });
  if (verdict.allowed) return verdict;

  filter::Denial denial =
      filter::MakeDenial(verdict.decision, state_->Header(request, "Accept"), state_->clock->Now());
  verdict.status = 429;
  verdict.content_type = denial.content_type;
  verdict.body = std::move(denial.body);
  return verdict;
}

bool Filter::Release(const FilterVerdict& verdict) {
  bool released = false;
  for (const FilterLease& lease : verdict.leases) {
    if (lease.rule >= state_->options.rules.size()) continue;
    released |=
        state_->engine.Release(lease.key, state_->options.rules[lease.rule].quota, lease.lease);
  }
  return released;
}

}  // namespace weir
