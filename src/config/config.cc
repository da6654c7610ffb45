#include "config/config.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/nearest.h"
#include "config/read.h"
#include "config/settings.h"
#include "policy/fields.h"
#include "policy/policy_file.h"
#include "policy/policy_set.h"

namespace weir::config {
namespace {

using policy::yaml::Fields;
using policy::yaml::Mark;
using policy::yaml::Node;
using policy::yaml::Problem;
using policy::yaml::Report;

constexpr std::string_view kDefaultPolicy = "default_policy";
constexpr policy::yaml::Limits kLimits{
    .max_bytes = std::size_t{1} << 20, .max_nodes = 100'000, .max_depth = 16};

std::vector<std::string> Split(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    if (comma > 0) parts.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return parts;
}

std::string Suggestion(std::string_view key) {
  std::vector<std::string_view> keys;
  for (const Setting& setting : AllSettings()) keys.push_back(setting.info.key);
  keys.push_back(kDefaultPolicy);
  if (key.find('.') == std::string_view::npos) {
    for (const Setting& setting : AllSettings()) {
      const std::size_t dot = setting.info.key.find('.');
      if (dot != std::string_view::npos) keys.push_back(setting.info.key.substr(0, dot));
    }
  }
  const auto nearest = Nearest(key, keys);
  return nearest ? "; did you mean '" + std::string(*nearest) + "'?" : std::string();
}

bool IsSection(std::string_view name) {
  return std::any_of(AllSettings().begin(), AllSettings().end(), [&](const Setting& setting) {
    return setting.info.key.size() > name.size() && setting.info.key.starts_with(name) &&
           setting.info.key[name.size()] == '.';
  });
}

/// Sets a Config from a tree, one setting after the other.
class Reader {
 public:
  Reader(Config& config, Report& report) : config_(config), report_(report) {}

  void ReadRoot(const Node& root) {
    if (root.kind != Node::Kind::kMapping) {
      report_.Add(root.mark, "expected settings such as `store: \"memory:\"`");
      return;
    }
    for (const auto& [name, value] : root.fields) {
      config_.marks[name->scalar] = value->mark;
      if (name->scalar == kDefaultPolicy) {
        ReadDefaultPolicy(*value);
      } else if (IsSection(name->scalar)) {
        ReadSection(name->scalar, *value);
      } else {
        ReadSetting(name->scalar, name->mark, *value);
      }
    }
  }

  void ReadDefaultPolicy(const Node& node) {
    if (node.kind == Node::Kind::kNull) return;
    Fields fields(node, std::string(kDefaultPolicy), report_);
    if (!fields.is_mapping()) return;
    config_.default_policy_written = true;
    policy::Definition& policy = config_.default_policy;
    if (auto name = fields.Text("name"); name && !name->empty()) policy.name = *name;
    if (fields.Bool("unlimited").value_or(false)) policy.quota.reset();
    if (const Node* quota = fields.Take("quota")) {
      if (auto parsed = policy::ParseQuota(*quota, report_)) policy.quota = *parsed;
    }
    if (const Node* rule = fields.Take("on_store_error")) {
      const auto parsed = policy::ParseOnStoreError(rule->scalar);
      if (parsed) {
        policy.on_store_error = *parsed;
      } else {
        AddWrongName(*rule, "default_policy.on_store_error", {"allow", "deny", "local"}, report_);
      }
    }
    policy.source = report_.file();
    fields.Finish();
  }

 private:
  void ReadSection(const std::string& section, const Node& node) {
    if (node.kind == Node::Kind::kNull) return;
    if (node.kind != Node::Kind::kMapping) {
      report_.Add(node.mark, section + ": expected a mapping of settings");
      return;
    }
    for (const auto& [name, value] : node.fields) {
      config_.marks[section + "." + name->scalar] = value->mark;
      ReadSetting(section + "." + name->scalar, name->mark, *value);
    }
  }

  void ReadSetting(const std::string& key, const Mark& mark, const Node& value) {
    if (report_.full()) return;
    const Setting* setting = FindSetting(key);
    if (setting == nullptr) {
      report_.Add(mark, "unknown setting '" + key.substr(0, 64) + "'" + Suggestion(key));
      return;
    }
    std::vector<std::string> texts;
    if (value.kind == Node::Kind::kSequence && setting->info.list) {
      for (const Node* item : value.items) {
        if (item->kind == Node::Kind::kMapping &&
            (key == "access.keys" || key == "oidc.roles" || key == "access.subjects")) {
          texts.push_back(OneLine(key, *item));
          continue;
        }
        if (item->kind != Node::Kind::kScalar) {
          report_.Add(item->mark, key + ": expected a string");
          return;
        }
        texts.push_back(item->scalar);
      }
    } else if (value.kind == Node::Kind::kMapping && key == "stores") {
      texts = NamedUrls(value);
    } else if (value.kind == Node::Kind::kScalar) {
      texts.push_back(value.scalar);
    } else if (value.kind == Node::Kind::kNull) {
      return;
    } else {
      report_.Add(value.mark, key + (setting->info.list ? ": expected a list of strings"
                                                        : ": expected one value"));
      return;
    }
    if (Status set = setting->apply(config_, texts); !set.ok()) {
      report_.Add(value.mark, key + ": " + set.error().message);
    }
  }

  /// {main: URL, wide: [URL, URL]} → "main=URL", "wide=URL", "wide=URL".
  static std::vector<std::string> NamedUrls(const Node& node) {
    std::vector<std::string> texts;
    for (const auto& [name, value] : node.fields) {
      if (value->kind != Node::Kind::kSequence) texts.push_back(name->scalar + "=" + value->scalar);
      for (const Node* item : value->items) texts.push_back(name->scalar + "=" + item->scalar);
    }
    return texts;
  }

  /// {name: ci, roles: [read, operate], key: …} → "ci:read+operate:…", the form of flags and the
  /// environment; {name: …, roles: …} → "roles:name". A colon ends each part except the last.
  std::string OneLine(const std::string& key, const Node& node) {
    Fields fields(node, key, report_);
    std::string roles;
    if (const Node* list = fields.Take("roles")) {
      if (list->kind == Node::Kind::kScalar) roles = list->scalar;
      for (const Node* role : list->items) roles += (roles.empty() ? "" : "+") + role->scalar;
    }
    if (roles.find(':') != std::string::npos) {
      report_.Add(node.mark, key + ": unknown role '" + roles.substr(0, 64) + "'");
    }
    const std::string name = fields.Text("name").value_or("");
    const std::string line =
        key == "access.keys" ? name + ":" + roles + ":" + KeyIn(fields, key) : roles + ":" + name;
    if (key == "access.keys" && name.find(':') != std::string::npos) {
      report_.Add(node.mark,
                  key + ": the name '" + name.substr(0, 64) + "' must not contain a colon");
    }
    fields.Finish();
    return line;
  }

  /// The value of `key`, of `hash`, which is a key's digest, or of `file`, which contains a key.
  std::string KeyIn(Fields& fields, const std::string& key) {
    std::vector<std::string> given;
    if (const auto file = fields.Text("file")) given.push_back("@" + *file);
    for (const char* const name : {"hash", "key"}) {
      if (const auto text = fields.Text(name)) given.push_back(*text);
    }
    if (given.size() == 1) return given.front();
    report_.Add(fields.mark(), key + ": give one of key, hash and file");
    return {};
  }

  Config& config_;
  Report& report_;
};

void ApplyOverride(Config& config, const Override& one, std::vector<Problem>& problems) {
  const auto fail = [&](std::string message) {
    problems.push_back({one.source, {}, std::move(message)});
  };
  if (one.key == kDefaultPolicy) {
    const auto document = policy::yaml::Document::Parse(one.value, one.source, problems, kLimits);
    Report report(one.source, problems);
    if (document.root() != nullptr) Reader(config, report).ReadDefaultPolicy(*document.root());
    return;
  }
  config.marks[one.key] = {};
  const Setting* setting = FindSetting(one.key);
  if (setting == nullptr) return fail("unknown setting '" + one.key + "'" + Suggestion(one.key));
  const std::vector<std::string> texts =
      setting->info.list ? Split(one.value) : std::vector<std::string>{one.value};
  if (Status set = setting->apply(config, texts); !set.ok()) fail(set.error().message);
}

// Checks that involve several settings.
void CheckTogether(const Config& config, const std::string& file, std::vector<Problem>& problems) {
  const auto fail = [&](std::string message) {
    problems.push_back(ProblemIn(config, file, std::move(message)));
  };
  const Address& http = config.listen.http;
  const bool administrators = std::ranges::any_of(config.access.keys, [](const auto& key) {
    return MayDo(key.roles, access::Operation::kAdmin);
  });
  if (config.admin.keyless_allowed && config.admin.allow.empty()) {
    fail("admin.keyless: 'allowed' requires admin.allow, the addresses that need no key");
  }
  if (!http.off && !http.loopback() && config.admin.keys.empty() && !administrators &&
      !config.oidc.enabled() && !config.admin.keyless_allowed) {
    fail("admin.keys: required, because " + http.ToString() +
         " (listen.http) can be reached from other machines and serves /admin; give one with "
         "--admin-key or WEIR_ADMIN_KEYS");
  }
  if (!config.access.subjects.empty() && config.tls.client_ca.empty()) {
    fail("access.subjects: requires tls.client_ca, to verify client certificates");
  }
  const Config::Oidc& oidc = config.oidc;
  if (oidc.enabled() && (oidc.audience.empty() || oidc.jwks.empty() || oidc.roles.empty())) {
    fail("oidc.issuer: requires oidc.audience, oidc.jwks and oidc.roles");
  }
  if (oidc.jwks.starts_with("http://")) {
    fail(
        "oidc.jwks: must be a file or an https:// URL: whoever controls the network could send "
        "other keys");
  }
  if (config.tls.cert.empty() && !config.tls.key.empty()) fail("tls.cert: required with tls.key");
  if (config.tls.key.empty() && !config.tls.cert.empty()) fail("tls.key: required with tls.cert");
  if (!config.tls.client_ca.empty() && config.tls.cert.empty()) {
    fail("tls.client_ca: requires tls.cert and tls.key");
  }
  if (config.xds.tls_cert.empty() != config.xds.tls_key.empty()) {
    fail("xds.tls_cert and xds.tls_key must be given together");
  }
  if (config.proxy.upstream_tls_cert.empty() != config.proxy.upstream_tls_key.empty()) {
    fail("proxy.upstream_tls_cert and proxy.upstream_tls_key must be given together");
  }
}

}  // namespace

Config::Config() : default_policy(policy::DefaultPolicy()) {}

std::span<const SettingInfo> Settings() {
  static const std::vector<SettingInfo> infos = [] {
    std::vector<SettingInfo> all;
    for (const Setting& setting : AllSettings()) all.push_back(setting.info);
    all.push_back({kDefaultPolicy, "", "what bare keys get that no policy names", false});
    return all;
  }();
  return infos;
}

Problem ProblemIn(const Config& config, const std::string& file, std::string message) {
  const std::string key = message.substr(0, message.find_first_of(": "));
  auto found = config.marks.find(key);
  if (found == config.marks.end()) found = config.marks.find(key.substr(0, key.find('.')));
  return {file, found == config.marks.end() ? Mark{} : found->second, std::move(message)};
}

Config Read(const Node* root, const std::string& file, std::span<const Override> overrides,
            std::vector<Problem>& problems) {
  Config config;
  const std::size_t before = problems.size();
  if (root != nullptr) {
    Report report(file, problems);
    Reader(config, report).ReadRoot(*root);
    const std::filesystem::path folder = std::filesystem::path(file).parent_path();
    for (std::string& path : config.policies) {
      if (std::filesystem::path(path).is_relative()) path = (folder / path).string();
    }
  }
  for (const Override& one : overrides) ApplyOverride(config, one, problems);
  for (std::string& wrong : ResolveStores(config)) {
    problems.push_back(ProblemIn(config, file, std::move(wrong)));
  }
  if (problems.size() == before) CheckTogether(config, file, problems);
  return config;
}

Config Parse(std::string_view text, const std::string& file, std::span<const Override> overrides,
             std::vector<Problem>& problems) {
  const auto document = policy::yaml::Document::Parse(text, file, problems, kLimits);
  return Read(document.root(), file, overrides, problems);
}

Config Load(const std::string& path, std::span<const Override> overrides,
            std::vector<Problem>& problems) {
  if (path.empty()) return Read(nullptr, path, overrides, problems);
  std::string text;
  if (!policy::yaml::ReadFile(path, kLimits.max_bytes, text, problems)) return {};
  if (text.empty() && std::filesystem::is_regular_file(path)) {
    // As a copy leaves it when the disk is full.
    problems.push_back({path,
                        {},
                        "is empty; write \"policies: []\" if there are no policies, or \"{}\" for "
                        "a configuration of defaults"});
    return {};
  }
  return Parse(text, path, overrides, problems);
}

}  // namespace weir::config
