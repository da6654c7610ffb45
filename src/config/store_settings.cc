// Several stores: their names, how keys are divided among their servers, and which keys are
// being moved from one to another.

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>

#include "config/settings.h"
#include "config/values.h"
#include "policy/charging.h"

namespace weir::config {
namespace {

constexpr std::size_t kMaxServers = 64;
constexpr std::uint32_t kPerPercent = 100;

/// Commas separate stores in the environment and in flags, but also the hosts of a URL: a part that
/// does not begin with NAME= belongs to the URL before it.
std::vector<std::string> Rejoined(Texts texts) {
  std::vector<std::string> joined;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    const bool begins = equals != std::string::npos && IsPlainName(text.substr(0, equals));
    if (begins || joined.empty()) {
      joined.push_back(text);
    } else {
      joined.back().append(",").append(text);
    }
  }
  return joined;
}

Status SetStores(Config& config, Texts texts) {
  config.stores.clear();
  for (const std::string& text : Rejoined(texts)) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || !IsPlainName(text.substr(0, equals))) {
      return Expected("NAME=URL, with a name of letters, digits, - and _",
                      text.substr(0, text.find(':')));
    }
    const std::string name = text.substr(0, equals);
    std::string url;
    if (Status set = SetStoreUrl(url, text.substr(equals + 1)); !set.ok()) {
      return Error{set.error().code, name + ": " + set.error().message};
    }
    auto found = std::ranges::find(config.stores, name, &Config::NamedStore::name);
    if (found == config.stores.end()) {
      config.stores.push_back({.name = name});
      found = std::prev(config.stores.end());
    }
    found->urls.push_back(std::move(url));
  }
  return {};
}

/// 5, 5% or 0.25%.
Status SetShare(std::uint32_t& target, std::string_view text) {
  std::string_view digits = text;
  if (digits.ends_with('%')) digits.remove_suffix(1);
  double percent = -1;
  const auto [end, problem] =
      std::from_chars(digits.data(), digits.data() + digits.size(), percent);
  if (problem != std::errc() || end != digits.data() + digits.size() ||
      !(percent >= 0 && percent <= 100)) {
    return Expected("a percentage from 0 to 100", text);
  }
  target = static_cast<std::uint32_t>(percent * kPerPercent + 0.5);
  return {};
}

Status SetRegionTerm(std::chrono::milliseconds& target, const std::string& text) {
  const auto term = ReadTime(text, true);
  const bool fits = term.ok() && (term->count() == 0 || (*term >= policy::kShortestRegionTerm &&
                                                         *term <= policy::kLongestRegionTerm));
  if (!fits) return Expected("a time from 40ms to 1m, or off", text);
  target = *term;
  return {};
}

// clang-format off
const std::array<Setting, 8> kStoreSettings = {{
    {{"stores", "--stores", "Several stores by name, each NAME=URL; several URLs under one name share its keys", true}, SetStores},
    {{"region.term", "--region-term", "How long a region's store keeps permits of leased policies; off: no regions"},
     [](Config& c, Texts t) { return SetRegionTerm(c.region.term, t[0]); }},
    {{"region.lends", "--region-lends", "This service is the store of a region: it lends permits to nodes"},
     [](Config& c, Texts t) { return Set(c.region.lends, ReadSwitch(t[0])); }},
    {{"move.from", "", "The store to move keys from; empty: none"},
     [](Config& c, Texts t) -> Status { c.move.from = t[0]; return {}; }},
    {{"move.to", "", "The store to move keys to"},
     [](Config& c, Texts t) -> Status { c.move.to = t[0]; return {}; }},
    {{"move.share", "--move-share", "Percentage of keys that are charged in both stores"},
     [](Config& c, Texts t) { return SetShare(c.move.share, t[0]); }},
    {{"move.done", "--move-done", "Percentage of keys that are charged only in the new store"},
     [](Config& c, Texts t) { return SetShare(c.move.done, t[0]); }},
    {{"move.policies", "", "Move only the keys of these policies, each domain/name; empty: all", true},
     [](Config& c, Texts t) -> Status { c.move.policies.assign(t.begin(), t.end()); return {}; }},
}};
// clang-format on

std::string NamesOf(const Config& config) {
  std::string names;
  for (const Config::NamedStore& store : config.stores) {
    names += (names.empty() ? "" : ", ") + store.name;
  }
  return names;
}

bool Has(const Config& config, const std::string& name) {
  return std::ranges::find(config.stores, name, &Config::NamedStore::name) != config.stores.end();
}

void CheckRegion(const Config& config, std::vector<std::string>& wrong) {
  const Config::Region& region = config.region;
  if (region.lends && region.term.count() == 0) {
    wrong.emplace_back("region.lends: requires region.term, the same as in all regions");
  }
  if (region.term.count() != 0 && !config.stores.empty()) {
    wrong.emplace_back("region.term: cannot be used with several stores");
  }
  if (region.lends && !config.store_given) {
    wrong.emplace_back("region.lends: requires the home store of all regions in `store`");
  }
}

void CheckMove(const Config& config, std::vector<std::string>& wrong) {
  const Config::Move& move = config.move;
  if (move.from.empty() && move.to.empty()) {
    if (move.share != 0 || move.done != 0)
      wrong.push_back("move.share: requires move.from and move.to");
    return;
  }
  for (const auto& [key, name] : {std::pair("move.from", &move.from), {"move.to", &move.to}}) {
    if (!Has(config, *name)) {
      wrong.push_back(std::string(key) + ": unknown store '" + *name + "'; stores has " +
                      (config.stores.empty() ? "none" : NamesOf(config)));
    }
  }
  if (move.from == move.to) wrong.emplace_back("move.to: must differ from move.from");
  if (move.done > move.share) {
    wrong.emplace_back(
        "move.done: cannot exceed move.share: keys are charged in both stores before they are "
        "charged only in the new one");
  }
}

}  // namespace

std::span<const Setting> StoreSettings() { return kStoreSettings; }

std::vector<std::string> ResolveStores(Config& config) {
  std::vector<std::string> wrong;
  CheckMove(config, wrong);
  CheckRegion(config, wrong);
  if (config.stores.empty()) {
    if (!config.store_name.empty()) {
      wrong.push_back(
          "store: expected a URL such as redis://localhost:6379, or the name of one of "
          "`stores`; there is no store '" +
          config.store_name + "'");
    }
    return wrong;
  }
  std::size_t servers = 0;
  for (const Config::NamedStore& store : config.stores) servers += store.urls.size();
  if (servers > kMaxServers) {
    wrong.push_back("stores: more than " + std::to_string(kMaxServers) + " servers");
  }
  if (config.store_given && config.store_name.empty()) {
    wrong.push_back("store: must be one of `stores`: " + NamesOf(config));
    return wrong;
  }
  if (!config.store_given) config.store_name = config.stores.front().name;
  const auto usual = std::ranges::find(config.stores, config.store_name, &Config::NamedStore::name);
  if (usual == config.stores.end()) {
    wrong.push_back("store: unknown store '" + config.store_name + "'; stores has " +
                    NamesOf(config));
    return wrong;
  }
  config.store = usual->urls.front();
  return wrong;
}

}  // namespace weir::config
