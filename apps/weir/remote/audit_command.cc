#include <simdjson.h>

#include <algorithm>
#include <cctype>
#include <iostream>
#include <memory>

#include "command.h"
#include "console.h"
#include "policy/policy_words.h"
#include "remote/json_fields.h"
#include "remote/remote.h"

// weir audit: who changed what, latest first.

namespace weir::app::audit_command {
namespace {

namespace dom = simdjson::dom;

constexpr int kMostEntries = 100'000;
constexpr std::size_t kPage = 1000;

struct Words {
  Remote remote;
  std::string name;
  std::string action = {};
  std::string except = {};
  int limit = 20;
  std::int64_t undo = 0;
  std::string expires = {};
};

/// "policy:user-1" is about user-1, and so is "key:user-1".
bool IsAbout(std::string_view target, std::string_view name) {
  return name.empty() || target == name || target.substr(target.find(':') + 1) == name;
}

/// The name as a whole word: "c-7" is in "daily-c-7", but not in "daily-c-77".
bool HasWord(std::string_view text, std::string_view name) {
  const auto in_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  for (std::size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    const bool begins = at == 0 || !in_word(text[at - 1]) || !in_word(name.front());
    if (begins && (end == text.size() || !in_word(text[end]) || !in_word(name.back()))) return true;
  }
  return false;
}

/// An exception for user c-77 is about c-77, whatever its name is.
bool Matches(dom::element entry, const char* state, std::string_view name) {
  dom::object match;
  if (entry[state]["match"].get(match) != simdjson::SUCCESS) return false;
  return std::any_of(match.begin(), match.end(), [name](const auto& field) {
    std::string_view text;
    return field.value.get(text) == simdjson::SUCCESS && text == name;
  });
}

bool Concerns(dom::element entry, std::string_view name) {
  const std::string target = TextOf(entry, "target");
  return IsAbout(target, name) || HasWord(target.substr(target.find(':') + 1), name) ||
         Matches(entry, "before", name) || Matches(entry, "after", name);
}

bool IsCount(std::string_view field) {
  return field == "version" || field == "id" || field == "createdAt" || field == "updatedAt";
}

/// Default values of a policy, and fields that its algorithm does not use.
bool IsUsual(dom::object made, std::string_view field, std::string_view value) {
  std::string_view type;
  const bool refills = made["type"].get(type) == simdjson::SUCCESS && type == "TOKEN_BUCKET";
  if (field == "refillRate") return !refills;
  if (field == "windowSeconds") return refills;
  return (field == "cost" && value == "1") || (field == "onStoreError" && value == "\"local\"");
}

/// What was created, in short: "type TOKEN_BUCKET, capacity 5". Omits what its name says.
std::string Made(dom::object made, const std::string& target) {
  constexpr int kMost = 6;
  const bool policy = target.starts_with("policy:");
  std::string_view type;
  const bool overrides = made["type"].get(type) == simdjson::SUCCESS && type == "OVERRIDE";
  std::string text;
  int shown = 0;
  for (const auto field : made) {
    std::string_view plain;
    const bool is_text = field.value.get(plain) == simdjson::SUCCESS;
    const std::string value = simdjson::minify(field.value);
    const bool decides = overrides && field.key == "shadow";  // it says nothing else
    const bool none = !decides && (value == "null" || value == "false" || value == "\"\"");
    if (none || IsCount(field.key) || (is_text && IsAbout(target, plain))) continue;
    if (policy && IsUsual(made, field.key, value)) continue;
    if (shown++ == kMost) return text + ", …";
    if (!text.empty()) text += ", ";
    text.append(field.key).append(" ").append(is_text ? std::string(plain) : value);
  }
  return text;
}

/// The changed fields, in short: "capacity 1 → 2, shadow false → true".
std::string Summary(dom::element entry) {
  dom::object before;
  dom::object after;
  const bool was = entry["before"].get(before) == simdjson::SUCCESS;
  const bool is = entry["after"].get(after) == simdjson::SUCCESS;
  if (!is) return was ? "gone" : "";
  if (!was && TextOf(entry, "action") == "key.reset") {
    // A reset's answer is not a created object.
    std::string_view status;
    const bool unknown = after["status"].get(status) == simdjson::SUCCESS && status == "UNKNOWN";
    return unknown ? "unknown: the store did not answer in time" : "";
  }
  if (!was) return Made(after, TextOf(entry, "target"));
  std::string text;
  for (const auto field : after) {
    const std::string now = simdjson::minify(field.value);
    dom::element old;
    const bool there = before[field.key].get(old) == simdjson::SUCCESS;
    const std::string then = there ? std::string(simdjson::minify(old)) : "-";
    if (now == then || IsCount(field.key)) continue;
    if (!text.empty()) text += ", ";
    text.append(field.key).append(" ").append(then).append(" → ").append(now);
  }
  return text;
}

/// Prints entries until there are enough. Not thread-safe.
class Printer {
 public:
  explicit Printer(const Words& words) : words_(words) {}

  bool full() const { return shown_ == words_.limit; }
  void Add(dom::element entry) {
    if (full() || !Concerns(entry, words_.name)) return;
    ++shown_;
    if (words_.remote.json) {
      json_ += (json_.size() > 1 ? "," : "") + std::string(simdjson::minify(entry));
      return;
    }
    table_.Add({TextOf(entry, "id"), TextOf(entry, "at"), TextOf(entry, "who"),
                TextOf(entry, "action"), TextOf(entry, "target"), Summary(entry)});
  }
  void Print() const { std::cout << (words_.remote.json ? json_ + "]\n" : table_.ToList()); }

 private:
  const Words& words_;
  int shown_ = 0;
  std::string json_ = "[";
  Table table_{{">id", "at", "who", "action", "target", "changed"}};
};

int Run(const Words& words) {
  Printer printer(words);
  dom::parser parser;
  std::int64_t before = 0;
  do {
    // The requested ones may be few: then a page is read whole.
    const std::size_t page =
        words.name.empty() ? std::min<std::size_t>(static_cast<std::size_t>(words.limit), kPage)
                           : kPage;
    const Result<ServiceReply> reply = words.remote.Exchange(
        "GET", "/admin/audit?limit=" + std::to_string(page) + "&before=" + std::to_string(before) +
                   "&action=" + UrlEscaped(words.action) + "&except=" + UrlEscaped(words.except));
    if (!reply.ok()) return Fail(reply.error());
    if (!reply->ok()) return FailRefused(*reply);
    dom::element answer;
    dom::array entries;
    if (parser.parse(reply->body).get(answer) != simdjson::SUCCESS ||
        answer["changes"].get(entries) != simdjson::SUCCESS) {
      return FailUnexpected();
    }
    for (const dom::element entry : entries) printer.Add(entry);
    before = NumberOf(answer, "next");
  } while (before != 0 && !printer.full());
  printer.Print();
  return kExitOk;
}

int RunUndo(const Words& words) {
  const UndoOf named{Shown(words.name),
                     [&words](std::string_view target) { return IsAbout(target, words.name); }};
  return Undo(words.remote, words.undo, words.expires, named,
              [](const ServiceReply&) -> int { return kExitOk; });
}

void Configure(Syntax word) {
  auto words = std::make_shared<Words>();
  word.AddOption("name", words->name,
                 "Only changes of policies, bare keys or buckets whose name has this word, and "
                 "of\npolicies that match this value");
  word.AddOption("--action", words->action,
                 "Only these actions, such as policy (all of them) or policy.update,key.reset");
  word.AddOption("--except", words->except, "None of these, such as slot.claim,notify.send");
  word.AddOption("--limit", words->limit, "Maximum number of results")
      .Between(1, kMostEntries)
      .ShowDefault();
  words->remote.AddTo(word);
  const Option undo = word.AddOption("--undo", words->undo, "Undo the change with this ID")
                          .Between(std::int64_t{1}, INT64_MAX);
  word.AddOption("--expires", words->expires,
                 "With --undo, when the policy expires: 2030-01-31T12:00:00Z, 2h or never")
      .Needs(undo);
  word.Footer(
      "Latest first. --undo restores a policy, slot config or user limit as it was before;\n"
      "a policy that has expired since needs --expires. To go further back, undo the change\n"
      "before it; to undo an undo makes its change again.");
  word.OnRun([words] { return words->undo != 0 ? RunUndo(*words) : Run(*words); });
}

const Command kAudit("audit", "Show who changed what, and when.", Configure);

}  // namespace
}  // namespace weir::app::audit_command
