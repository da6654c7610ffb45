#include "policy/envoy_config.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "policy/duration.h"
#include "policy/policy_file.h"

namespace weir::policy {
namespace {

using std::chrono::seconds;
using yaml::Fields;
using yaml::Node;
using yaml::Report;

struct EnvoyUnit {
  std::string_view name;
  seconds length;
};

// A month is 30 days and a year 365, as Envoy's service has it.
constexpr std::array<EnvoyUnit, 7> kEnvoyUnits = {{{"second", seconds(1)},
                                                   {"minute", seconds(60)},
                                                   {"hour", seconds(3600)},
                                                   {"day", seconds(86'400)},
                                                   {"week", seconds(604'800)},
                                                   {"month", seconds(2'592'000)},
                                                   {"year", seconds(31'536'000)}}};

std::optional<seconds> LengthOf(std::string unit) {
  for (char& c : unit) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto* found = std::find_if(kEnvoyUnits.begin(), kEnvoyUnits.end(),
                                   [&unit](const EnvoyUnit& known) { return known.name == unit; });
  if (found == kEnvoyUnits.end()) return std::nullopt;
  return found->length;
}

class Reader {
 public:
  explicit Reader(Report& report) : report_(report) {}

  std::vector<Definition> Read(const Node& root) {
    Fields fields(root, "", report_);
    domain_ = fields.Text("domain").value_or("");
    static_cast<void>(CheckName(domain_, root, "domain", report_));
    ReadList(fields.Take("descriptors"));
    fields.Finish();
    ResolveReplaces();
    return std::move(out_);
  }

 private:
  void ReadList(const Node* list) {
    if (list == nullptr) return;
    if (list->kind != Node::Kind::kSequence) {
      report_.Add(list->mark, "descriptors: expected a list");
      return;
    }
    std::set<std::pair<std::string, std::string>> seen;
    for (const Node* item : list->items) ReadDescriptor(*item, seen);
  }

  void ReadDescriptor(const Node& node, std::set<std::pair<std::string, std::string>>& seen) {
    Fields fields(node, "descriptor", report_);
    if (!fields.is_mapping()) return;
    const std::string key = fields.Text("key").value_or("");
    const std::string value = fields.Text("value").value_or("");
    if (!CheckName(key, node, "descriptor: key", report_)) return;
    if (value.size() > kMaxMatchBytes) {
      report_.Add(node.mark,
                  "descriptor: value: longer than " + std::to_string(kMaxMatchBytes) + " bytes");
      return;
    }
    if (!seen.emplace(key, value).second) {
      report_.Add(node.mark,
                  "descriptor: '" + key + (value.empty() ? "" : "_" + value) + "' is here already");
    }
    if (chain_.size() >= kMaxEnvoyDepth || out_.size() >= kMaxPolicies) {
      report_.Add(node.mark, "descriptors: more than " + std::to_string(kMaxEnvoyDepth) +
                                 " levels deep, or more than " + std::to_string(kMaxPolicies) +
                                 " of them");
      return;
    }
    chain_.push_back(value.empty() ? EntryMatch{key, MatchKind::kAny, {}}
                                   : MakeEntryMatch(key, value));
    const bool shadow = fields.Bool("shadow_mode").value_or(false);
    // What only changes Envoy's statistics changes nothing here.
    fields.Bool("detailed_metric");
    fields.Bool("value_to_metric");
    const Node* limit = fields.Take("rate_limit");
    const Node* nested = fields.Take("descriptors");
    fields.Finish();
    if (limit != nullptr) {
      ReadLimit(*limit, shadow);
    } else if (nested == nullptr || nested->items.empty()) {
      // On a white list: not even the limit of the bare key applies.
      Add(node, "").exempt = true;
    }
    ReadList(nested);
    chain_.pop_back();
  }

  void ReadLimit(const Node& node, bool shadow) {
    Fields fields(node, "rate_limit", report_);
    if (!fields.is_mapping()) return;
    const std::string name = fields.Text("name").value_or("");
    const bool unlimited = fields.Bool("unlimited").value_or(false);
    const std::optional<std::string> unit = fields.Text("unit");
    const std::optional<std::int64_t> requests = fields.Int("requests_per_unit");
    Definition& policy = Add(node, name);
    policy.shadow = fields.Bool("shadow_mode").value_or(shadow);
    ReadReplaces(fields.Take("replaces"), name, policy);
    fields.Finish();
    if (unlimited) {
      if (unit) report_.Add(node.mark, "rate_limit: unit and unlimited exclude each other");
      return;
    }
    const std::optional<seconds> length = LengthOf(unit.value_or(""));
    if (!length) {
      report_.Add(node.mark,
                  "rate_limit: unit: expected second, minute, hour, day, week, month or "
                  "year, got '" +
                      unit.value_or("").substr(0, 64) + "'");
      return;
    }
    if (!requests || *requests < 0 || *requests > std::numeric_limits<std::uint32_t>::max()) {
      report_.Add(node.mark, "rate_limit: requests_per_unit: expected 0 to 4294967295");
      return;
    }
    policy.quota = *Quota::FixedWindow(std::max<std::int64_t>(*requests, 1), *length);
    // A limit of 0 admits nothing: a quota of 1 that every hit asks 2 of.
    if (*requests == 0) policy.cost = 2;
  }

  void ReadReplaces(const Node* list, const std::string& own_name, Definition& policy) {
    if (list == nullptr) return;
    if (list->kind != Node::Kind::kSequence) {
      report_.Add(list->mark, "replaces: expected a list of { name: … }");
      return;
    }
    for (const Node* item : list->items) {
      Fields fields(*item, "replaces", report_);
      const std::string name = fields.Text("name").value_or("");
      fields.Finish();
      if (name.empty()) {
        report_.Add(item->mark, "replaces: name must not be empty");
      } else if (name == own_name) {
        report_.Add(item->mark, "replaces: a limit cannot replace itself");
      } else {
        policy.replaces.push_back(name);
      }
    }
  }

  /// A policy for the chain as it stands. Envoy's limits need no name, and may share one.
  Definition& Add(const Node& node, const std::string& limit_name) {
    std::string name = limit_name;
    if (name.empty()) {
      for (const EntryMatch& entry : chain_) {
        if (!name.empty()) name += '.';
        name += entry.name;
        if (entry.kind != MatchKind::kAny) name += "_" + MatchText(entry);
      }
    }
    for (char& c : name) {
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
    }
    constexpr std::size_t kRoomForNumber = 12;
    name.resize(std::min(name.size(), kMaxNameBytes - kRoomForNumber));
    const std::size_t uses = ++names_[name];
    Definition& policy = out_.emplace_back();
    policy.domain = domain_;
    policy.name = uses == 1 ? name : name + "#" + std::to_string(uses);
    policy.match = chain_;
    policy.has_match = true;
    policy.ordered = true;
    policy.source = report_.file() + ":" + std::to_string(node.mark.line) + ":" +
                    std::to_string(node.mark.column);
    if (!limit_name.empty()) by_limit_name_[limit_name].push_back(policy.name);
    return policy;
  }

  /// From names of limits, which several policies may have, to names of policies.
  void ResolveReplaces() {
    for (Definition& policy : out_) {
      std::vector<std::string> resolved;
      for (const std::string& name : policy.replaces) {
        const auto found = by_limit_name_.find(name);
        if (found == by_limit_name_.end()) continue;  // as in Envoy: replaces nothing
        resolved.insert(resolved.end(), found->second.begin(), found->second.end());
      }
      policy.replaces = std::move(resolved);
    }
  }

  Report& report_;
  std::string domain_;
  std::vector<EntryMatch> chain_;
  std::vector<Definition> out_;
  std::map<std::string, std::size_t> names_;
  std::map<std::string, std::vector<std::string>> by_limit_name_;
};

/// In double quotes, so that nothing in it means anything to YAML.
std::string Quoted(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (byte < 0x20 || byte == 0x7f) {
      quoted += {'\\', 'x', kHex[byte >> 4U], kHex[byte & 15U]};
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

}  // namespace

bool IsEnvoyConfig(const Node& root) noexcept {
  return root.kind == Node::Kind::kMapping &&
         std::any_of(root.fields.begin(), root.fields.end(),
                     [](const auto& field) { return field.first->scalar == "descriptors"; });
}

std::vector<Definition> ReadEnvoyConfig(const Node& root, Report& report) {
  return Reader(report).Read(root);
}

std::vector<Definition> ParseEnvoyConfig(std::string_view text, const std::string& file,
                                         std::vector<yaml::Problem>& problems) {
  const yaml::Document document = yaml::Document::Parse(text, file, problems);
  if (document.root() == nullptr) return {};
  Report report(file, problems);
  return ReadEnvoyConfig(*document.root(), report);
}

std::string FormatChains(std::span<const Definition> definitions) {
  if (definitions.empty()) return "policies: []\n";
  std::string out = "domain: " + Quoted(definitions.front().domain) + "\npolicies:\n";
  for (const Definition& policy : definitions) {
    out += "  - name: " + Quoted(policy.name) + "\n    chain: [";
    for (std::size_t i = 0; i < policy.match.size(); ++i) {
      if (i > 0) out += ", ";
      out += "{ " + Quoted(policy.match[i].name) + ": " + Quoted(MatchText(policy.match[i])) + " }";
    }
    out += "]\n";
    if (policy.exempt) {
      out += "    exempt: true\n";
    } else if (!policy.quota) {
      out += "    unlimited: true\n";
    } else {
      out += "    quota: { fixed_window: { limit: " + std::to_string(policy.quota->limit()) +
             ", window: " + FormatDuration(policy.quota->window()) + " } }\n";
    }
    if (policy.cost != 1) out += "    cost: " + std::to_string(policy.cost) + "\n";
    if (policy.shadow) out += "    shadow: true\n";
    if (policy.replaces.empty()) continue;
    out += "    replaces: [";
    for (std::size_t i = 0; i < policy.replaces.size(); ++i) {
      out += (i > 0 ? ", " : "") + Quoted(policy.replaces[i]);
    }
    out += "]\n";
  }
  return out;
}

}  // namespace weir::policy
