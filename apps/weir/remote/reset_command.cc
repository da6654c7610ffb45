#include <simdjson.h>

#include <iostream>
#include <memory>

#include "command.h"
#include "console.h"
#include "remote/json_fields.h"
#include "remote/remote.h"
#include "remote/subject_words.h"

// weir reset: clears what buckets were charged.

namespace weir::app::reset_command {
namespace {

namespace dom = simdjson::dom;

struct Words {
  Remote remote;
  SubjectWords subject;
};

bool WasHeld(dom::element object) {
  bool held = false;
  return object["held"].get(held) == simdjson::SUCCESS && held;
}

int Print(const Words& words, const ServiceReply& reply) {
  dom::parser parser;
  dom::element answer;
  dom::array buckets;
  if (parser.parse(reply.body).get(answer) != simdjson::SUCCESS ||
      answer["buckets"].get(buckets) != simdjson::SUCCESS) {
    return FailUnexpected();
  }
  const bool any = WasHeld(answer);
  if (words.remote.json) return any ? kExitOk : kExitNo;
  const std::string& name = words.subject.key;
  if (!name.empty()) {
    std::cout << (any ? "reset " : "nothing to reset for ") << Shown(name) << '\n';
    return any ? kExitOk : kExitNo;
  }
  for (const dom::element bucket : buckets) {
    std::cout << (WasHeld(bucket) ? "reset " : "nothing to reset for ")
              << Shown(TextOf(bucket, "bucket")) << '\n';
  }
  return any ? kExitOk : kExitNo;
}

int Run(const Words& words) {
  if (!words.subject.Valid()) return kExitUsage;
  const std::string target = words.subject.key.empty()
                                 ? "/admin/reset?" + words.subject.EntryQuery().substr(1)
                                 : "/admin/reset/" + UrlEscaped(words.subject.key);
  return words.remote.Ask("POST", target, {},
                          [&](const ServiceReply& reply) { return Print(words, reply); });
}

void Configure(Syntax word) {
  auto words = std::make_shared<Words>();
  words->subject.AddTo(word, "A bare key, or a bucket as top and explain print it");
  words->remote.AddTo(word);
  word.Footer(
      "Exits with 0 if something was reset and 1 if there was nothing to reset.\n\n"
      "  weir reset user-123\n  weir reset 'api/per-user|user:42'\n"
      "  weir reset --domain api -e user=42");
  word.OnRun([words] { return Run(*words); });
}

const Command kReset("reset", "Reset the limits of a key, a bucket or a request.", Configure);

}  // namespace
}  // namespace weir::app::reset_command
