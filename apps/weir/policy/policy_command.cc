#include <simdjson.h>

#include <iostream>
#include <memory>

#include "base/json_writer.h"
#include "command.h"
#include "console.h"
#include "policy/policy_apply.h"
#include "policy/policy_documents.h"
#include "policy/policy_words.h"
#include "protocol/http/error.h"
#include "remote/json_fields.h"
#include "remote/remote.h"

// weir policy list | get | apply | delete | diff | history | rollback | undo; enforce and shadow
// have a file of their own.

namespace weir::app::policy_command {
namespace {

namespace dom = simdjson::dom;

struct Words {
  Remote remote;
  std::string key;
  std::string file;  ///< or the key of a policy, to compare versions of it
  std::int64_t number = 0;
  std::vector<std::int64_t> versions = {};
  std::string expires = {};
  bool dry_run = false;
};
using Run = int (*)(const Words&);

std::string PathOf(const Words& words) { return "/admin/policies/" + UrlEscaped(words.key); }

/// The policy of keys that no other policy names; it is not in the service's list.
int AddDefault(const Remote& remote, Table& table) {
  return ForEachPolicy(remote, "default", [&](dom::element policy) {
    table.Add({TextOf(policy, "policyKey"), TextOf(policy, "type"), LimitOf(policy),
               AppliesTo(policy), StateOf(policy), TextOf(policy, "definedIn"), ""});
  });
}

int RunList(const Words& words) {
  Table table({"policy", "type", "limit", "applies to", "state", "source", "expires"});
  std::string json = "[";
  const int code = ForEachPolicy(words.remote, "", [&](dom::element policy) {
    if (words.remote.json) {
      json += (json.size() > 1 ? "," : "") + std::string(simdjson::minify(policy));
      return;
    }
    const std::string place = TextOf(policy, "definedIn");
    dom::element over;
    const bool overridden = policy["override"].get(over) == simdjson::SUCCESS;
    table.Add({TextOf(policy, "policyKey"), TextOf(policy, "type"), LimitOf(policy),
               AppliesTo(policy), StateOf(policy), place.empty() ? "admin" : place,
               TextOf(overridden ? over : policy, "expiresAt")});
  });
  if (code != kExitOk) return code;
  if (words.remote.json) {
    std::cout << json << "]\n";
    return kExitOk;
  }
  if (const int listed = AddDefault(words.remote, table); listed != kExitOk) return listed;
  std::cout << table.ToList();
  return kExitOk;
}

int RunGet(const Words& words) {
  return words.remote.Ask("GET", PathOf(words), {}, [&](const ServiceReply& reply) -> int {
    if (!words.remote.json) std::cout << PrettyPolicy(reply.body);
    return kExitOk;
  });
}

int RunDelete(const Words& words) {
  return words.remote.Ask("DELETE", PathOf(words), {}, [&](const ServiceReply&) -> int {
    if (!words.remote.json) std::cout << "deleted " << Shown(words.key) << '\n';
    return kExitOk;
  });
}

int RunHistory(const Words& words) {
  return words.remote.Ask(
      "GET", PathOf(words) + "/versions?limit=1000", {}, [&](const ServiceReply& reply) -> int {
        if (words.remote.json) return kExitOk;
        dom::parser parser;
        dom::array versions;
        if (parser.parse(reply.body)["versions"].get(versions) != simdjson::SUCCESS) {
          return FailUnexpected();
        }
        Table table({">version", "at", "action", "type", ">capacity", "state", "who"});
        for (const dom::element one : versions) {
          dom::element policy;
          const bool there = one["policy"].get(policy) == simdjson::SUCCESS && !policy.is_null();
          // A deletion makes no version, so its number would name another state.
          table.Add({there ? TextOf(one, "version") : "-", TextOf(one, "at"), TextOf(one, "action"),
                     there ? TextOf(policy, "type") : "", there ? TextOf(policy, "capacity") : "",
                     there ? StateOf(policy) : "gone", TextOf(one, "who")});
        }
        std::cout << table.ToList();
        return kExitOk;
      });
}

int RunRollback(const Words& words) {
  const Result<std::string> end = EndValue(words.expires);
  if (!end.ok()) return Fail(end.error());
  return words.remote.Ask("POST", PathOf(words) + "/rollback", JsonObject([&](JsonWriter& json) {
                            json.Field("version", words.number);
                            if (!end->empty()) json.RawField("expiresAt", *end);
                          }),
                          [&](const ServiceReply& reply) -> int {
                            if (!words.remote.json) std::cout << PrettyPolicy(reply.body);
                            return kExitOk;
                          });
}

int RunUndo(const Words& words) {
  const UndoOf policies{"a policy",
                        [](std::string_view target) { return target.starts_with("policy:"); }};
  return Undo(words.remote, words.number, words.expires, policies,
              [&](const ServiceReply& reply) -> int {
                if (words.remote.json) return kExitOk;
                std::cout << PrettyPolicy(reply.body);
                return kExitOk;
              });
}

/// Two versions of a policy, or one and the current one.
int RunVersionDiff(const Words& words) {
  std::string target = "/admin/policies/" + UrlEscaped(words.file) +
                       "/diff?from=" + std::to_string(words.versions[0]);
  if (words.versions.size() > 1) target += "&to=" + std::to_string(words.versions[1]);
  return words.remote.Ask("GET", target, {}, [&](const ServiceReply& reply) -> int {
    dom::parser parser;
    dom::array changes;
    if (parser.parse(reply.body)["changes"].get(changes) != simdjson::SUCCESS) {
      return FailUnexpected();
    }
    if (!words.remote.json) {
      for (const dom::element change : changes) {
        const auto side = [&](const char* name) {
          const std::string text = TextOf(change, name);
          return text == "null" ? "-" : Shown(text);
        };
        std::cout << Shown(TextOf(change, "field")) << ": " << side("before") << " → "
                  << side("after") << '\n';
      }
    }
    return changes.size() == 0 ? kExitOk : kExitNo;
  });
}

int RunDiff(const Words& words) {
  if (words.versions.empty()) return DiffFile({words.remote, words.file, words.expires});
  if (words.expires.empty()) return RunVersionDiff(words);
  return Fail(
      {Code::kInvalidArgument, "--expires goes with a file; to compare versions, leave it out"});
}

int RunApply(const Words& words) {
  return ApplyFile({words.remote, words.file, words.expires}, words.dry_run);
}

/// Adds one word; `needs` names its argument: "key", "file", "number" (of a version) …
std::shared_ptr<Words> AddWord(Syntax parent, const char* name, const char* about,
                               std::string_view needs, Run run) {
  auto words = std::make_shared<Words>();
  Syntax word = parent.AddSubcommand(name, about);
  const auto need = [needs](std::string_view what) { return needs.find(what) != needs.npos; };
  if (need("key")) word.AddOption("policy", words->key, "The policy's key").Required();
  if (need("file")) {
    word.AddOption("file", words->file,
                   need("versions")
                       ? "A policy file (YAML or JSON; - is standard input), or a policy's key"
                       : "A policy file (YAML or JSON); - is standard input")
        .Required();
  }
  if (need("versions")) {
    word.AddOption("versions", words->versions,
                   "After a key: two versions, or one to compare with the current version")
        .Values(1, 2)
        .Between(std::int64_t{1}, INT64_MAX);
  }
  if (need("number")) {
    word.AddOption("version", words->number, "The version; see weir policy history")
        .Between(std::int64_t{1}, INT64_MAX)
        .Required();
  }
  if (need("id")) {
    word.AddOption("change", words->number, "ID of the change; see weir audit")
        .Between(std::int64_t{1}, INT64_MAX)
        .Required();
  }
  if (need("end")) {
    word.AddOption("--expires", words->expires,
                   "When it expires: 2030-01-31T12:00:00Z, 2h from now, or never");
  }
  if (need("dry")) word.AddFlag("--dry-run", words->dry_run, "Only show what would change");
  words->remote.AddTo(word);
  word.OnRun([words, run] { return run(*words); });
  return words;
}

void Configure(Syntax word) {
  word.RequireSubcommand();
  AddWord(word, "list", "List all policies, stored and from files.", "", RunList);
  AddWord(word, "get", "Show a policy.", "key", RunGet);
  AddWord(word, "apply", "Create or update the policies of a file.", "file dry end", RunApply);
  AddWord(word, "diff",
          "Show what apply would change, or compare versions; exit with 1 if different.",
          "file versions end", RunDiff);
  AddWord(word, "delete", "Delete a policy.", "key", RunDelete);
  AddWord(word, "history", "List the versions of a policy.", "key", RunHistory);
  AddWord(word, "rollback", "Restore a version of a policy.", "key number end", RunRollback);
  AddPolicyTrial(word);
  AddWord(word, "undo", "Undo a change from the audit log.", "id end", RunUndo);
}

const Command kPolicy("policy", "Show and change the policies of a running service.", Configure);

}  // namespace
}  // namespace weir::app::policy_command
