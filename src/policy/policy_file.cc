#include "policy/policy_file.h"

#include <algorithm>
#include <utility>

#include "policy/charging.h"
#include "policy/envoy_config.h"

namespace weir::policy {
namespace {

using yaml::Fields;
using yaml::Node;
using yaml::Report;

// What a nested policy inherits from those around it.
struct Outer {
  std::string domain;
  std::vector<EntryMatch> match;
  bool has_match = false;
  OnStoreError on_store_error = OnStoreError::kLocal;
  Mode mode = Mode::kExact;
  bool shadow = false;
  ChargeMode charge = ChargeMode::kAllOrNone;
  bool overdraw = false;
  std::string store = {};
};

std::string Place(const Report& report, const yaml::Mark& mark) {
  return report.file() + ":" + std::to_string(mark.line) + ":" + std::to_string(mark.column);
}

class Reader {
 public:
  Reader(Report& report, std::vector<Definition>& out) : report_(report), out_(out) {}

  void ReadFile(const Node& root) {
    Fields fields(root, "", report_);
    if (!fields.is_mapping()) return;
    Outer outer;
    outer.domain = kDefaultDomain;
    if (const Node* domain = fields.Take("domain")) {
      if (auto text = yaml::AsText(*domain, "domain", report_);
          text && CheckName(*text, *domain, "domain", report_)) {
        outer.domain = std::move(*text);
      }
    }
    outer.charge = ReadChargeMode(fields, report_, ChargeMode::kAllOrNone);
    ReadList(fields.Take("policies"), outer, 1);
    fields.Finish();
  }

 private:
  void ReadList(const Node* list, const Outer& outer, int depth) {
    if (list == nullptr) return;
    if (list->kind != Node::Kind::kSequence) {
      report_.Add(list->mark, "policies: expected a list");
      return;
    }
    if (depth > kMaxPolicyNesting) {
      report_.Add(list->mark, "policies: nested more than " + std::to_string(kMaxPolicyNesting) +
                                  " levels deep");
      return;
    }
    for (const Node* item : list->items) {
      if (out_.size() >= kMaxPolicies) {
        report_.Add(item->mark, "more than " + std::to_string(kMaxPolicies) + " policies");
        return;
      }
      ReadPolicy(*item, outer, depth);
    }
  }

  void ReadPolicy(const Node& node, const Outer& outer, int depth) {
    Fields fields(node, "policy", report_);
    if (!fields.is_mapping()) return;
    Definition policy;
    policy.domain = outer.domain;
    policy.match = outer.match;
    policy.has_match = outer.has_match;
    policy.on_store_error = outer.on_store_error;
    policy.mode = outer.mode;
    policy.shadow = outer.shadow;
    policy.charge = outer.charge;
    policy.overdraw = outer.overdraw;
    policy.store = outer.store;
    policy.source = Place(report_, node.mark);

    if (const Node* name = fields.Take("name")) {
      if (auto text = yaml::AsText(*name, "name", report_);
          text && CheckName(*text, *name, "name", report_)) {
        policy.name = std::move(*text);
      }
    } else {
      report_.Add(node.mark, "policy: name is missing");
    }
    if (const Node* match = fields.Take("match")) ReadMatch(*match, policy);
    if (const Node* chain = fields.Take("chain")) ReadChain(*chain, policy);
    ReadShared(fields, policy);
    policy.exempt = fields.Bool("exempt").value_or(false);
    if (policy.exempt && !policy.ordered) {
      report_.Add(node.mark, "policy: exempt requires a chain");
    }
    policy.replaces = fields.Texts("replaces").value_or(std::vector<std::string>());
    // It would never apply, so it would limit nothing.
    if (std::ranges::find(policy.replaces, policy.name) != policy.replaces.end()) {
      report_.Add(node.mark, "replaces: a policy cannot replace itself");
    }
    if (const Node* key = fields.Take("key")) {
      if (auto text = yaml::AsText(*key, "key", report_);
          text && CheckName(*text, *key, "key", report_)) {
        if (Status plain = CheckBareKey(*text); !plain.ok()) {
          report_.Add(key->mark, "key: " + plain.error().message);
        }
        policy.key = std::move(*text);
      }
    }
    ReadBehaviour(fields, policy);
    const Node* nested = fields.Take("policies");
    if (nested != nullptr && policy.ordered) {
      report_.Add(nested->mark, "policies: a policy with a chain cannot contain others");
      nested = nullptr;
    }
    ReadGrant(fields, policy, nested != nullptr);
    fields.Finish();
    ReadList(nested,
             {policy.domain, policy.match, policy.has_match, policy.on_store_error, policy.mode,
              policy.shadow, policy.charge, policy.overdraw, policy.store},
             depth + 1);
  }

  void ReadBehaviour(Fields& fields, Definition& policy) {
    if (const Node* node = fields.Take("on_store_error")) {
      const std::optional<std::string> text = yaml::AsText(*node, "on_store_error", report_);
      const std::optional<OnStoreError> value =
          text ? ParseOnStoreError(*text) : std::optional<OnStoreError>();
      if (value) {
        policy.on_store_error = *value;
      } else if (text) {
        AddWrongName(*node, "on_store_error", {"allow", "deny", "local"}, report_);
      }
    }
    ReadMode(fields, policy);
    if (auto store = fields.Text("store")) policy.store = std::move(*store);
    if (auto shadow = fields.Bool("shadow")) policy.shadow = *shadow;
    if (auto overdraw = fields.Bool("overdraw")) policy.overdraw = *overdraw;
    policy.blocked = fields.Bool("blocked").value_or(false);
    policy.quota_mode = fields.Bool("quota_mode").value_or(false);
    policy.shadow = policy.shadow || policy.quota_mode;
    policy.limit_name = fields.Text("limit_name").value_or("");
    policy.metadata = ReadMetadata(fields, report_);
    if (const Node* node = fields.Take("cost")) {
      const std::optional<std::int64_t> cost = yaml::AsInt(*node, "cost", report_);
      if (cost && (*cost < 1 || *cost > kMaxPolicyCost)) {
        report_.Add(node->mark, "cost: expected 1 to " + std::to_string(kMaxPolicyCost) + ", got " +
                                    std::to_string(*cost));
      } else if (cost) {
        policy.cost = *cost;
      }
    }
  }

  void ReadMode(Fields& fields, Definition& policy) {
    const Node* node = fields.Take("mode");
    if (node == nullptr) return;
    const std::optional<std::string> text = yaml::AsText(*node, "mode", report_);
    if (!text) return;
    if (const std::optional<Mode> mode = ParseMode(*text)) {
      policy.mode = *mode;
    } else {
      AddWrongName(*node, "mode", {"exact", "leased", "rate_leased"}, report_);
    }
  }

  // The quota or `unlimited`, and with it the policy itself. A policy with neither only groups
  // those that are nested in it.
  void ReadGrant(Fields& fields, Definition& policy, bool has_nested) {
    bool unlimited = fields.Bool("unlimited").value_or(false);
    const Node* quota = fields.Take("quota");
    if (quota != nullptr && quota->kind == Node::Kind::kMapping && quota->fields.size() == 1 &&
        quota->fields.front().first->scalar == "unlimited") {
      unlimited = yaml::AsBool(*quota->fields.front().second, "quota.unlimited", report_) == true;
      quota = nullptr;
    }
    if (policy.blocked && quota == nullptr) {
      report_.Add(fields.mark(), "policy: blocked requires a quota");
      return;
    }
    if (quota != nullptr && unlimited) {
      report_.Add(quota->mark, "policy: give either unlimited or a quota, not both");
      return;
    }
    if (quota != nullptr) {
      policy.quota = ParseQuota(*quota, report_);
      if (!policy.quota) return;
      if (const Status charges = CheckCharging(policy); !charges.ok()) {
        return report_.Add(quota->mark, charges.error().message);
      }
    } else if (!unlimited && !policy.exempt) {
      if (!has_nested) {
        report_.Add(fields.mark(), "policy: expected a quota, or unlimited: true");
      }
      return;
    }
    if (!policy.has_match && policy.key.empty()) {
      report_.Add(fields.mark(),
                  "policy: expected match (which requests it applies to; {} is all) or key");
      return;
    }
    out_.push_back(policy);
  }

  // The whole descriptor, entry by entry in order: [{ database: users }, { role: "*" }].
  void ReadChain(const Node& node, Definition& policy) {
    if (policy.has_match) {
      report_.Add(node.mark,
                  "chain: give either match or chain, not both, including the enclosing policy");
      return;
    }
    const bool is_list = node.kind == Node::Kind::kSequence && !node.items.empty() &&
                         node.items.size() <= kMaxMatchEntries;
    if (!is_list) {
      report_.Add(node.mark, "chain: expected 1 to " + std::to_string(kMaxMatchEntries) +
                                 " entries, such as [{ user: \"*\" }]");
      return;
    }
    policy.has_match = true;
    policy.ordered = true;
    for (const Node* item : node.items) {
      if (item->kind != Node::Kind::kMapping || item->fields.size() != 1) {
        report_.Add(item->mark, "chain: each item must be one entry, such as { user: \"*\" }");
        continue;
      }
      const auto& [name, value] = item->fields.front();
      const std::optional<std::string> text =
          yaml::AsText(*value, "chain." + name->scalar.substr(0, 64), report_);
      if (!text || !CheckName(name->scalar, *name, "chain", report_)) continue;
      if (text->size() > kMaxMatchBytes) {
        report_.Add(value->mark,
                    "chain: a value is longer than " + std::to_string(kMaxMatchBytes) + " bytes");
        continue;
      }
      AddEntry(name->scalar, *text, *value, "chain." + name->scalar, policy);
    }
  }

  void AddEntry(const std::string& name, std::string_view text, const Node& value,
                const std::string& what, Definition& policy) {
    Result<EntryMatch> entry = ReadEntryMatch(name, text);
    if (entry.ok()) {
      policy.match.push_back(std::move(*entry));
    } else {
      report_.Add(value.mark, what + ": " + entry.error().message);
    }
  }

  // Entries of the chain whose values share one bucket.
  void ReadShared(Fields& fields, Definition& policy) {
    const std::vector<std::string> names =
        fields.Texts("share").value_or(std::vector<std::string>());
    for (const std::string& name : names) {
      const auto entry = std::find_if(policy.match.begin(), policy.match.end(),
                                      [&](const EntryMatch& one) { return one.name == name; });
      const bool fits = policy.ordered && entry != policy.match.end();
      if (!fits || entry->kind == MatchKind::kExact) {
        report_.Add(fields.mark(), "share: '" + name.substr(0, 64) +
                                       "' is not an entry of the chain that ends with '*'");
        continue;
      }
      for (EntryMatch& one : policy.match) {
        if (one.name == name && one.kind != MatchKind::kExact) one.shared = true;
      }
    }
  }

  void ReadMatch(const Node& node, Definition& policy) {
    if (node.kind != Node::Kind::kMapping) {
      report_.Add(node.mark, "match: expected entries such as { user: \"*\", route: /v1/pay }");
      return;
    }
    policy.has_match = true;
    for (const auto& [name, value] : node.fields) {
      if (!CheckName(name->scalar, *name, "match", report_)) continue;
      const std::string what = "match." + name->scalar;
      const std::optional<std::string> text = yaml::AsText(*value, what, report_);
      if (!text) continue;
      if (text->size() > kMaxMatchBytes) {
        report_.Add(value->mark,
                    what + ": longer than " + std::to_string(kMaxMatchBytes) + " bytes");
        continue;
      }
      for (const EntryMatch& entry : policy.match) {
        if (entry.name != name->scalar) continue;
        report_.Add(name->mark, what + ": the enclosing policy already matches it");
        return;
      }
      if (policy.match.size() >= kMaxMatchEntries) {
        report_.Add(name->mark,
                    "match: more than " + std::to_string(kMaxMatchEntries) + " entries");
        return;
      }
      AddEntry(name->scalar, *text, *value, what, policy);
    }
  }

  Report& report_;
  std::vector<Definition>& out_;
};

}  // namespace

std::vector<Definition> ParsePolicies(std::string_view text, const std::string& file,
                                      std::vector<yaml::Problem>& problems, bool lenient) {
  const yaml::Document document = yaml::Document::Parse(text, file, problems);
  if (document.root() == nullptr) return {};
  Report report(file, problems);
  report.set_lenient(lenient && IsEnvoyConfig(*document.root()));
  return ReadPolicies(*document.root(), report);
}

std::vector<Definition> ReadPolicies(const Node& root, Report& report) {
  if (IsEnvoyConfig(root)) return ReadEnvoyConfig(root, report);
  std::vector<Definition> definitions;
  Reader(report, definitions).ReadFile(root);
  return definitions;
}

bool CheckName(std::string_view text, const yaml::Node& node, const std::string& what,
               yaml::Report& report) {
  if (text.empty() || text.size() > kMaxNameBytes) {
    report.Add(node.mark, what + ": expected 1 to " + std::to_string(kMaxNameBytes) + " bytes");
    return false;
  }
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      report.Add(node.mark, what + ": must not contain control characters");
      return false;
    }
  }
  return true;
}

}  // namespace weir::policy
