#include <iostream>
#include <memory>
#include <optional>
#include <vector>

#include "admin/policy_body.h"
#include "admin/policy_store.h"
#include "base/json_writer.h"
#include "console.h"
#include "policy/policy_words.h"
#include "remote/json_fields.h"

// weir policy enforce | shadow: from trial to enforced and back, wherever a policy is defined. A
// policy of the admin API is updated; one of a file gets an override, which the file's next change
// does not undo.

namespace weir::app {
namespace {

namespace dom = simdjson::dom;

constexpr int kNotFound = 404;

struct Words {
  Remote remote;
  std::string name;
  std::string domain;
  std::string expires;
};

/// A policy of a file that has the given name.
struct FilePolicy {
  std::string domain;
  std::string name;
  bool shadow = false;
  bool overridden = false;
  std::int64_t version = 0;  ///< of the override
};

/// Where the policy is replaced, if it is still at this version.
std::string TargetOf(const std::string& key, std::int64_t version) {
  return "/admin/policies/" + UrlEscaped(key) + "?version=" + std::to_string(version);
}

/// `fill` writes the policy; --expires is added to it.
template <typename Fill>
int Send(const Words& words, const char* method, const std::string& target, Fill fill, bool shadow,
         const std::string& what) {
  const Result<std::string> end = EndValue(words.expires);
  if (!end.ok()) return Fail(end.error());
  const std::string body = JsonObject([&](JsonWriter& json) {
    fill(json);
    if (!end->empty()) json.RawField("expiresAt", *end);
  });
  return words.remote.Ask(method, target, body, [&](const ServiceReply& reply) -> int {
    PrintWarnings(words.name, reply);
    if (!words.remote.json) {
      std::cout << Shown(words.name) << (shadow ? " is in shadow mode" : " is enforced") << what
                << '\n';
    }
    return kExitOk;
  });
}

/// Changes a policy of the admin API, given as `json`.
int ChangeStored(const Words& words, std::string json, bool shadow) {
  json.reserve(json.size() + simdjson::SIMDJSON_PADDING);
  Result<policy::StoredPolicy> stored = http::ReadPolicy(json);
  if (!stored.ok()) return FailUnexpected();
  stored->shadow = shadow;
  if (!words.expires.empty()) stored->expires_at = 0;
  const auto fill = [&](JsonWriter& body) { policy::AppendPolicy(body, *stored); };
  const std::string target = TargetOf(words.name, policy::VersionIn(json));
  return Send(words, "PUT", target, fill, shadow, "");
}

/// Overrides a file's policy.
int Override(const Words& words, const FilePolicy& policy, bool shadow) {
  const std::string key = policy.domain + "/" + policy.name;
  const auto fill = [&](JsonWriter& body) {
    body.Field("key", key)
        .Field("type", "OVERRIDE")
        .Field("domain", policy.domain)
        .Field("shadow", shadow);
  };
  const std::string what = ", by override; to return to the file: weir policy delete " + Shown(key);
  return policy.overridden ? Send(words, "PUT", TargetOf(key, policy.version), fill, shadow, what)
                           : Send(words, "POST", "/admin/policies", fill, shadow, what);
}

/// Where a policy, or what it overrides, is from: "file", "default", or empty: the admin API.
std::string SourceOf(const std::string& json) {
  dom::parser parser;
  dom::element policy;
  if (parser.parse(json).get(policy) != simdjson::SUCCESS) return {};
  return TextOf(policy, "type") == "OVERRIDE" ? "file" : TextOf(policy, "source");
}

int Run(const Words& words, bool shadow) {
  if (words.domain.empty()) {
    const Result<ServiceReply> stored =
        words.remote.Exchange("GET", "/admin/policies/" + UrlEscaped(words.name));
    if (!stored.ok()) return Fail(stored.error());
    if (!stored->ok() && stored->status != kNotFound) return FailRefused(*stored);
    const std::string source = stored->ok() ? SourceOf(stored->body) : "file";
    if (source == "default") {
      return Fail({Code::kFailedPrecondition,
                   "'" + words.name +
                       "' is the default policy, which is always enforced; to change it, set "
                       "default_policy in the configuration"});
    }
    if (source != "file") return ChangeStored(words, stored->body, shadow);
  }
  std::vector<FilePolicy> found;
  const int listed = ForEachPolicy(words.remote, "files", [&](dom::element policy) {
    dom::element over;
    const bool overridden = policy["override"].get(over) == simdjson::SUCCESS;
    const FilePolicy one{TextOf(policy, "domain"), TextOf(policy, "policyKey"),
                         TextOf(policy, "shadow") == "true", overridden,
                         overridden ? NumberOf(over, "version") : 0};
    const bool named = one.name == words.name || one.domain + "/" + one.name == words.name;
    if (named && (words.domain.empty() || words.domain == one.domain)) found.push_back(one);
  });
  if (listed != kExitOk) return listed;
  if (found.empty()) return Fail({Code::kNotFound, "no policy '" + words.name + "'"});
  if (found.size() > 1) {
    return Fail({Code::kInvalidArgument, "policy '" + words.name + "' is in domains '" +
                                             found[0].domain + "' and '" + found[1].domain +
                                             "': give --domain"});
  }
  const FilePolicy& policy = found.front();
  if (policy.shadow == shadow && !policy.overridden) {
    std::cerr << "weir: nothing to change: the policy file already has this\n";
    return kExitOk;
  }
  return Override(words, policy, shadow);
}

void AddWord(Syntax parent, const char* name, const char* about, bool shadow) {
  auto words = std::make_shared<Words>();
  Syntax word = parent.AddSubcommand(name, about);
  word.AddOption("policy", words->name, "The policy's key, or its name in a policy file")
      .Required();
  word.AddOption("--domain", words->domain, "The domain, if several have a policy with that name");
  word.AddOption("--expires", words->expires,
                 "When it expires: 2030-01-31T12:00:00Z, 2h from now, or never");
  words->remote.AddTo(word);
  word.Footer(
      "A policy in a file gets an override, which stays until it is deleted, undone or expires.\n\n"
      "  weir policy " +
      std::string(name) + " per-user --domain api --expires 2h\n  weir policy delete api/per-user");
  word.OnRun([words, shadow] { return Run(*words, shadow); });
}

}  // namespace

void AddPolicyTrial(Syntax policy_word) {
  AddWord(policy_word, "enforce", "Enforce a shadow policy, including one in a file.", false);
  AddWord(policy_word, "shadow", "Put a policy in shadow mode: it counts but refuses nothing.",
          true);
}

}  // namespace weir::app
