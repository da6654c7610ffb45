#include "policy/envoy_config.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/ascii.h"
#include "base/duration.h"
#include "base/hex.h"
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

// A month is 30 days and a year 365, as in Envoy's service.
constexpr std::array<EnvoyUnit, 7> kEnvoyUnits = {{{"second", seconds(1)},
                                                   {"minute", seconds(60)},
                                                   {"hour", seconds(3600)},
                                                   {"day", seconds(86'400)},
                                                   {"week", seconds(604'800)},
                                                   {"month", seconds(2'592'000)},
                                                   {"year", seconds(31'536'000)}}};

std::optional<seconds> LengthOf(std::string unit) {
  for (char& c : unit) c = Lower(c);
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
    charge_ = ReadChargeMode(fields, report_, kEnvoyCharge);
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
      report_.Add(node.mark, "descriptor: '" + key + (value.empty() ? "" : "_" + value) +
                                 "' is already defined here");
    }
    if (chain_.size() >= kMaxEnvoyDepth || out_.size() >= kMaxPolicies) {
      report_.Add(node.mark, "descriptors: more than " + std::to_string(kMaxEnvoyDepth) +
                                 " levels deep, or more than " + std::to_string(kMaxPolicies) +
                                 " of them");
      return;
    }
    // There, a `*` at the end is the only pattern, and everything else is literal.
    const std::string_view text = value.empty() ? "*" : std::string_view(value);
    chain_.push_back(text.ends_with('*') ? MakeEntryMatch(key, text)
                                         : EntryMatch{key, MatchKind::kExact, value, false});
    ReadSharing(fields, key + "_" + value);
    Traits traits;
    traits.shadow = fields.Bool("shadow_mode").value_or(false);
    traits.quota = fields.Bool("quota_mode").value_or(false);
    traits.metadata = ReadMetadata(fields, report_);
    // Fields that only affect Envoy's statistics have no effect here.
    fields.Bool("detailed_metric");
    fields.Bool("value_to_metric");
    const Node* limit = fields.Take("rate_limit");
    const Node* nested = fields.Take("descriptors");
    fields.Finish();
    if (limit != nullptr) {
      ReadLimit(*limit, std::move(traits));
    } else if (nested == nullptr || nested->items.empty()) {
      // Whitelisted: not even the limit of the bare key applies.
      Add(node, "").exempt = true;
    }
    ReadList(nested);
    chain_.pop_back();
  }

  /// The properties of a descriptor's limit.
  struct Traits {
    bool shadow = false;
    bool quota = false;
    std::string metadata;
  };

  void ReadSharing(Fields& fields, const std::string& composite) {
    if (!fields.Bool("share_threshold").value_or(false)) return;
    if (composite.ends_with('*')) {
      chain_.back().shared = true;
    } else {
      report_.Add(fields.mark(), "descriptor: share_threshold needs a value that ends with '*'");
    }
  }

  void ReadLimit(const Node& node, Traits traits) {
    Fields fields(node, "rate_limit", report_);
    if (!fields.is_mapping()) return;
    const std::string name = fields.Text("name").value_or("");
    const bool unlimited = fields.Bool("unlimited").value_or(false);
    const std::optional<std::string> unit = fields.Text("unit");
    const Node* requests = fields.Take("requests_per_unit");
    Definition& policy = Add(node, name);
    policy.limit_name = name;
    policy.quota_mode = traits.quota;
    policy.shadow = fields.Bool("shadow_mode").value_or(traits.shadow) || traits.quota;
    policy.metadata = std::move(traits.metadata);
    ReadReplaces(fields.Take("replaces"), name, policy);
    fields.Finish();
    const auto wrong = [&](const std::string& what) {
      report_.Add(node.mark, "rate_limit: " + what);
    };
    if (unlimited && unit) return wrong("give either unit or unlimited, not both");
    if (unlimited) return;
    if (!unit) return wrong("unit is missing");
    if (requests == nullptr) return wrong("requests_per_unit is missing");
    const std::optional<seconds> length = LengthOf(*unit);
    if (!length) {
      return wrong("unit: expected second, minute, hour, day, week, month or year, got '" +
                   unit->substr(0, 64) + "'");
    }
    const auto count = AsInt(*requests, "rate_limit: requests_per_unit", report_);
    if (!count) return;
    if (*count < 0 || *count > std::numeric_limits<std::uint32_t>::max()) {
      return wrong("requests_per_unit: expected 0 to 4294967295, got " + std::to_string(*count));
    }
    policy.quota = *Quota::FixedWindow(std::max<std::int64_t>(*count, 1), *length);
    policy.blocked = *count == 0;
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

  /// A policy for the current chain. Envoy's limits need no name, and may share one.
  Definition& Add(const Node& node, const std::string& limit_name) {
    std::string name = limit_name;
    if (name.empty()) {
      for (const EntryMatch& entry : chain_) {
        if (!name.empty()) name += '.';
        name += entry.name;
        if (entry.kind != MatchKind::kAny) name += "_" + PlainMatchText(entry);
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
    policy.charge = charge_;
    policy.source = report_.file() + ":" + std::to_string(node.mark.line) + ":" +
                    std::to_string(node.mark.column);
    if (!limit_name.empty()) by_limit_name_[limit_name].push_back(policy.name);
    return policy;
  }

  /// Converts names of limits, which several policies may share, to names of policies.
  void ResolveReplaces() {
    const auto is = [](const std::string& name) {
      return [&name](const Definition& policy) { return policy.name == name; };
    };
    for (Definition& policy : out_) {
      std::vector<std::string> resolved;
      for (const std::string& name : policy.replaces) {
        const auto found = by_limit_name_.find(name);
        if (found == by_limit_name_.end()) {
          // As in Envoy it replaces nothing, not even a policy that was named after its entries. It
          // is kept to be warned of.
          if (std::ranges::none_of(out_, is(name))) resolved.push_back(name);
          continue;
        }
        resolved.insert(resolved.end(), found->second.begin(), found->second.end());
      }
      policy.replaces = std::move(resolved);
    }
  }

  Report& report_;
  std::string domain_;
  ChargeMode charge_ = kEnvoyCharge;
  std::vector<EntryMatch> chain_;
  std::vector<Definition> out_;
  std::map<std::string, std::size_t> names_;
  std::map<std::string, std::vector<std::string>> by_limit_name_;
};

/// In double quotes, so that nothing in it is special in YAML.
std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (byte < 0x20 || byte == 0x7f) {
      quoted += "\\x";
      AppendHex(quoted, byte);
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

void AppendList(std::string& out, std::string_view field, std::span<const std::string> items) {
  if (items.empty()) return;
  out.append("    ").append(field).append(": [");
  for (std::size_t i = 0; i < items.size(); ++i) out += (i > 0 ? ", " : "") + Quoted(items[i]);
  out += "]\n";
}

void AppendChain(std::string& out, const Definition& policy) {
  out += "  - name: " + Quoted(policy.name) + "\n    chain: [";
  std::vector<std::string> shared;
  for (const EntryMatch& entry : policy.match) {
    if (&entry != &policy.match.front()) out += ", ";
    out += "{ " + Quoted(entry.name) + ": " + Quoted(MatchText(entry)) + " }";
    if (entry.shared) shared.push_back(entry.name);
  }
  out += "]\n";
  AppendList(out, "share", shared);
  if (policy.exempt) {
    out += "    exempt: true\n";
  } else if (!policy.quota) {
    out += "    unlimited: true\n";
  } else {
    out += "    quota: { fixed_window: { limit: " + std::to_string(policy.quota->limit()) +
           ", window: " + FormatDuration(policy.quota->window()) + " } }\n";
  }
  if (policy.blocked) out += "    blocked: true\n";
  if (policy.quota_mode) {
    out += "    quota_mode: true\n";
  } else if (policy.shadow) {
    out += "    shadow: true\n";
  }
  if (!policy.limit_name.empty()) out += "    limit_name: " + Quoted(policy.limit_name) + "\n";
  if (!policy.metadata.empty()) out += "    metadata: " + policy.metadata + "\n";
  AppendList(out, "replaces", policy.replaces);
}

bool HasField(const Node& root, std::string_view name) noexcept {
  return root.kind == Node::Kind::kMapping &&
         std::any_of(root.fields.begin(), root.fields.end(),
                     [name](const auto& field) { return field.first->scalar == name; });
}

}  // namespace

bool IsEnvoyConfig(const Node& root) noexcept { return HasField(root, "descriptors"); }

std::vector<Definition> ReadEnvoyConfig(const Node& root, Report& report) {
  return Reader(report).Read(root);
}

std::vector<Definition> ParseEnvoyConfig(std::string_view text, const std::string& file,
                                         std::vector<yaml::Problem>& problems, bool lenient) {
  const yaml::Document document = yaml::Document::Parse(text, file, problems);
  if (document.root() == nullptr) return {};
  Report report(file, problems);
  report.set_lenient(lenient);
  return ReadEnvoyConfig(*document.root(), report);
}

std::vector<std::string> FilesWithoutCharge(std::span<const std::string> files) {
  std::vector<std::string> found;
  for (const std::string& file : files) {
    std::vector<yaml::Problem> ignored;
    std::string text;
    if (!yaml::ReadFile(file, yaml::Limits{}.max_bytes, text, ignored)) continue;
    const yaml::Document document = yaml::Document::Parse(text, file, ignored);
    const Node* root = document.root();
    if (root == nullptr || !IsEnvoyConfig(*root) || HasField(*root, "charge")) continue;
    found.push_back(file);
  }
  return found;
}

std::string FormatChains(std::span<const Definition> definitions) {
  if (definitions.empty()) return "policies: []\n";
  const Definition& first = definitions.front();
  std::string out = "domain: " + Quoted(first.domain) + '\n';
  out.append("charge: ").append(ChargeModeName(first.charge)).append("\npolicies:\n");
  for (const Definition& policy : definitions) AppendChain(out, policy);
  return out;
}

}  // namespace weir::policy
