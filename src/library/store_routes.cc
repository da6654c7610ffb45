#include "library/store_routes.h"

#include <algorithm>
#include <utility>

#include "base/url.h"
#include "library/backends.h"
#include "policy/keys.h"

namespace weir::library {
namespace {

std::size_t IndexOf(const config::Config& config, const std::string& name) {
  const auto found = std::ranges::find(config.stores, name, &config::Config::NamedStore::name);
  return static_cast<std::size_t>(found - config.stores.begin());
}

store::route::Move MoveOf(const config::Config& config) {
  return {.from = IndexOf(config, config.move.from),
          .to = IndexOf(config, config.move.to),
          .share = config.move.share,
          .done = config.move.done,
          .policies = config.move.policies};
}

}  // namespace

std::vector<StoreMember> MembersOf(const config::Config& config) {
  if (config.stores.empty()) return {{"", config.store}};
  std::vector<StoreMember> members;
  for (const config::Config::NamedStore& store : config.stores) {
    for (std::size_t i = 0; i < store.urls.size(); ++i) {
      if (std::ranges::find(members, store.urls[i], &StoreMember::url) != members.end()) continue;
      const bool shard = store.urls.size() > 1;
      members.push_back({store.name + (shard ? "-" + std::to_string(i) : ""), store.urls[i]});
    }
  }
  return members;
}

bool OnlyMemory(const config::Config& config) {
  return std::ranges::all_of(MembersOf(config),
                             [](const StoreMember& member) { return member.url == "memory:"; });
}

bool MayBeAStore(const config::Config& config) {
  if (config.listen.resp.off) return false;
  const config::Config::Access& access = config.access;
  const bool keyless = access.keys.empty() && access.subjects.empty() &&
                       config.admin.keys.empty() && !config.oidc.enabled();
  if (keyless) return config.admin.keyless;
  const auto may = [](const auto& who) {
    return access::MayDo(who.roles, access::Operation::kStore);
  };
  return !config.admin.keys.empty() || std::ranges::any_of(access.keys, may) ||
         std::ranges::any_of(access.subjects, may) || std::ranges::any_of(config.oidc.roles, may);
}

std::vector<std::string> StoreNames(const config::Config& config) {
  std::vector<std::string> names;
  for (const config::Config::NamedStore& store : config.stores) names.push_back(store.name);
  return names;
}

std::string StoresText(const config::Config& config) {
  if (config.stores.empty()) return WithoutSecrets(config.store);
  std::string text;
  for (const StoreMember& member : MembersOf(config)) {
    text += (text.empty() ? "" : ", ") + member.name + "=" + WithoutSecrets(member.url);
  }
  return text;
}

std::vector<std::string> WrongUrls(const config::Config& config) {
  std::vector<std::string> wrong;
  const auto check = [&](const std::string& setting, const std::string& url) {
    const BackendKind* const kind = FindBackend(url);
    const Status good = kind == nullptr ? Status() : kind->check_url(url);
    if (!good.ok()) wrong.push_back(setting + ": " + good.error().message);
  };
  for (const StoreMember& member : MembersOf(config)) {
    check(member.name.empty() ? "store" : "stores: " + member.name, member.url);
  }
  check("policy_store", config.policy_store);
  check("slots.store", config.slots.store);
  check("notify.store", config.notify.store);
  check("notify.cache", config.notify.cache);
  return wrong;
}

std::chrono::milliseconds LevelPause(std::chrono::milliseconds timeout) {
  return std::max<std::chrono::milliseconds>(std::chrono::seconds(1), 4 * timeout);
}

store::route::Routes RoutesOf(const config::Config& config, const policy::PolicySet& policies) {
  store::route::Routes::Options options;
  const std::vector<StoreMember> members = MembersOf(config);
  for (const config::Config::NamedStore& store : config.stores) {
    store::route::Shards& shards = options.stores.emplace_back();
    for (const std::string& url : store.urls) {
      const auto found = std::ranges::find(members, url, &StoreMember::url);
      shards.push_back(static_cast<std::uint8_t>(found - members.begin()));
    }
  }
  options.usual = IndexOf(config, config.store_name);
  if (!config.move.from.empty()) options.move = MoveOf(config);
  for (const policy::Policy& policy : policies.policies()) {
    const std::string& name = policy.definition.store;
    if (name.empty() || !policy.unable.empty()) continue;
    if (!policy.definition.key.empty()) {
      std::string key;
      policy::AppendBucket(key, policy, policy.definition.key);
      options.keys.emplace(std::move(key), IndexOf(config, name));
      continue;
    }
    const std::string& first = policy.key_parts.front();
    options.policies.emplace(first.substr(0, first.find('|')), IndexOf(config, name));
  }
  return store::route::Routes(std::move(options));
}

const store::route::Routes& LiveRoutes::Current() {
  const std::uint64_t version = policies_.version();
  if (!routes_ || version != version_) {
    routes_.emplace(RoutesOf(config_, *policies_.Current()));
    version_ = version;
  }
  return *routes_;
}

}  // namespace weir::library
