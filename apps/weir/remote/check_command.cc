#include <simdjson.h>

#include <iostream>
#include <memory>
#include <utility>

#include "command.h"
#include "console.h"
#include "protocol/http/error.h"
#include "remote/json_fields.h"
#include "remote/remote.h"
#include "remote/subject_words.h"
#include "remote/waits.h"
#include "weir/quota.h"

// weir check: asks for permits as a client would. weir explain: why the answer is what it is.

namespace weir::app::check_command {
namespace {

namespace dom = simdjson::dom;

struct Words {
  Remote remote;
  SubjectWords subject;
  std::int64_t cost = 1;
  bool peek = false;
  bool overdraw = false;

  void AddTo(Syntax word, const std::string& about_key) {
    subject.AddTo(word, about_key);
    word.AddOption("--cost", cost, "Number of permits")
        .Between(std::int64_t{0}, kMaxLimit)
        .ShowDefault();
    remote.AddTo(word);
  }
};

bool IsAllowed(dom::element object) {
  bool allowed = false;
  return object["allowed"].get(allowed) == simdjson::SUCCESS && allowed;
}

/// No policy that is enforced applies. The default policy applies to every bare key, so this is for
/// descriptors only. Only `weir explain` knows whether shadow policies applied.
bool IsUnmatched(dom::element answer) {
  return NumberOf(answer, "limit") == 0 && TextOf(answer, "policy").empty();
}

/// Why a check is refused permanently. A policy may charge more than the check's cost.
std::string NeverAllowed(std::int64_t cost, std::int64_t limit) {
  const std::string which = cost > limit ? "cost " + std::to_string(cost) : "the cost";
  return which + " exceeds the limit of " + std::to_string(limit) + "; it can never be allowed";
}

void PrintDecision(dom::element answer, std::int64_t cost, bool overdraw = false) {
  const bool allowed = IsAllowed(answer);
  bool degraded = false;
  if (answer["degraded"].get(degraded) != simdjson::SUCCESS) degraded = false;
  std::cout << (allowed ? "allowed" : "limited");
  if (const std::string policy = TextOf(answer, "policy"); !policy.empty()) {
    std::cout << " by " << Shown(policy);
  }
  const std::int64_t limit = NumberOf(answer, "limit");
  const std::int64_t retry = NumberOf(answer, "retryAfterMs");
  if (!allowed && retry == 0) {
    std::cout << ": " << NeverAllowed(cost, limit);
  } else if (limit == 0 && allowed && !degraded) {
    std::cout << ": unlimited";
  } else {
    std::cout << ": " << NumberOf(answer, "remaining") << " of " << limit << " left";
    // Without the store an overdraft may not have been charged.
    const bool in_debt = overdraw && !degraded;
    if (!allowed) std::cout << (in_debt ? "; charged, in debt for " : "; retry in ") << Wait(retry);
  }
  if (const std::int64_t lease = NumberOf(answer, "lease"); lease != 0) {
    std::cout << "; lease " << lease;
  }
  if (degraded) std::cout << "; the store is down: on_store_error decided";
  std::cout << '\n';
}

/// Says what is probably misspelt in a request that no policy applies to, if the service answers
/// that: it may require another key for it.
void PrintHint(dom::element explanation) {
  const std::string hint = TextOf(explanation, "hint");
  if (!hint.empty()) std::cerr << "weir: " << Shown(hint) << '\n';
}

/// What the answer leaves out, such as policies that look at other entries, too.
void PrintNotes(std::ostream& out, dom::element explanation) {
  dom::array notes;
  if (explanation["notes"].get(notes) == simdjson::SUCCESS) {
    for (const dom::element note : notes) {
      std::string_view text;
      if (note.get(text) == simdjson::SUCCESS) out << "note: " << Shown(text) << '\n';
    }
  }
  const std::string search = TextOf(explanation, "search");
  if (!search.empty()) out << "to find all its buckets: weir keys " << ShellWord(search) << '\n';
}

/// Output for a check that no policy applies to: the service may require another key to say why.
void PrintUnmatched(const Words& words, bool allowed) {
  const auto reply =
      words.remote.Exchange("GET", "/admin/explain?cost=0" + words.subject.EntryQuery());
  dom::parser parser;
  dom::element explanation;
  dom::array policies;
  const bool explained = reply.ok() && reply->ok() &&
                         parser.parse(reply->body).get(explanation) == simdjson::SUCCESS &&
                         explanation["policies"].get(policies) == simdjson::SUCCESS;
  const bool none = explained && policies.size() == 0;
  std::cout << (allowed ? "allowed: no " : "refused: no ") << (none ? "" : "enforced ")
            << "policy applies" << (allowed ? "\n" : " (unmatched: deny)\n");
  if (!explained) return;
  PrintHint(explanation);
  const std::string note = TextOf(explanation, "note");
  if (!note.empty()) std::cerr << "note: " << Shown(note) << '\n';
  PrintNotes(std::cerr, explanation);
}

int RunCheck(const Words& words) {
  if (!words.subject.Valid()) return kExitUsage;
  return words.remote.Ask("POST", words.peek ? "/v1/peek" : "/v1/check",
                          words.subject.CheckBody(words.cost, {.overdraw = words.overdraw}),
                          [&](const ServiceReply& reply) -> int {
                            dom::parser parser;
                            dom::element answer;
                            if (parser.parse(reply.body).get(answer) != simdjson::SUCCESS) {
                              return FailUnexpected();
                            }
                            if (words.remote.json) return IsAllowed(answer) ? kExitOk : kExitNo;
                            if (IsUnmatched(answer)) {
                              PrintUnmatched(words, IsAllowed(answer));
                            } else {
                              PrintDecision(answer, words.cost, words.overdraw);
                            }
                            return IsAllowed(answer) ? kExitOk : kExitNo;
                          });
}

/// A policy that another one replaces, or without a limit, has no bucket and so nothing remaining.
std::string LeftOf(dom::element policy) {
  if (TextOf(policy, "bucket").empty()) return "-";
  return std::to_string(NumberOf(policy, "remaining"));
}

/// The store's numbers do not show which permits are still with a node, and which were lost.
void PrintLease(dom::element policy) {
  dom::element held;
  if (policy["held"].get(held) != simdjson::SUCCESS) return;
  std::cout << "note: policy '" << Shown(TextOf(policy, "policy"))
            << "' is leased: what nodes hold (this one " << NumberOf(policy, "held")
            << "), and what was lost with a node or an answer, counts as used until the window "
               "ends or the bucket has refilled\n";
}

/// Whether the text can be the name of a bucket (policy/keys.h): domain/policy|…, key|… or cl|…. A
/// bare key may contain anything, but hardly looks like one.
bool IsBucket(std::string_view text) {
  const std::size_t bar = text.find('|');
  if (bar == text.npos) return false;
  const std::string_view start = text.substr(0, bar);
  return start == "key" || start == "cl" || start.find('/') != start.npos;
}

int RunExplain(const Words& words) {
  if (!words.subject.Valid()) return kExitUsage;
  std::string target = "/admin/explain?cost=" + std::to_string(words.cost);
  const std::string& name = words.subject.key;
  if (!name.empty()) target += (IsBucket(name) ? "&bucket=" : "&key=") + UrlEscaped(name);
  target += words.subject.EntryQuery();
  return words.remote.Ask("GET", target, {}, [&](const ServiceReply& reply) -> int {
    dom::parser parser;
    dom::element answer;
    dom::array policies;
    if (parser.parse(reply.body).get(answer) != simdjson::SUCCESS ||
        answer["policies"].get(policies) != simdjson::SUCCESS) {
      return FailUnexpected();
    }
    const int code = IsAllowed(answer) ? kExitOk : kExitNo;
    if (words.remote.json) return code;
    // Which limit decides depends on the command that the client sends.
    std::string note = TextOf(answer, "note");
    if (!TextOf(answer, "throttle").empty()) {
      std::cout << Shown(WithWaits(std::exchange(note, {}))) << "\na check of this key: ";
    }
    // Without a policy only the service knows why; otherwise the lines below say it.
    if (IsUnmatched(answer)) {
      std::cout << Shown(WithWaits(TextOf(answer, "why"))) << '\n';
      PrintHint(answer);
    } else {
      PrintDecision(answer, words.cost);
    }
    if (const std::string domain = TextOf(answer, "domain");
        !domain.empty() && domain != "default") {
      std::cout << "domain " << Shown(domain) << '\n';
    }
    if (!note.empty()) std::cout << "note: " << Shown(WithWaits(note)) << '\n';
    PrintNotes(std::cout, answer);
    for (const dom::element policy : policies) PrintLease(policy);
    if (policies.size() == 0) return code;
    Table table({"policy", "quota", ">left", "bucket", "why"});
    for (const dom::element policy : policies) {
      table.Add({TextOf(policy, "policy"), TextOf(policy, "quota"), LeftOf(policy),
                 TextOf(policy, "bucket"), WithWaits(TextOf(policy, "why"))});
    }
    std::cout << '\n' << table.ToString();
    return code;
  });
}

void ConfigureCheck(Syntax word) {
  auto words = std::make_shared<Words>();
  words->AddTo(word, "A bare key, such as user-123");
  const Option peek = word.AddFlag("--peek", words->peek, "Check without charging");
  word.AddFlag("--overdraw", words->overdraw,
               "Charge whether it fits or not; limited means: now in debt")
      .Excludes(peek);
  word.Footer(
      "Exits with 0 if allowed and 1 if limited.\n\n  weir check user-123 --cost 5\n"
      "  weir check user-123 --cost 1200 --overdraw\n"
      "  weir check -e user=42 -e route=/v1/pay --domain api");
  word.OnRun([words] { return RunCheck(*words); });
}

void ConfigureExplain(Syntax word) {
  auto words = std::make_shared<Words>();
  words->AddTo(word, "A bare key, or a bucket as printed by top");
  word.Footer("Charges nothing. Exits with 0 if the request would be allowed and 1 if not.");
  word.OnRun([words] { return RunExplain(*words); });
}

const Command kCheck("check", "Check a key or request against a running service.", ConfigureCheck);
const Command kExplain("explain", "Show which policies apply to a request and what each decides.",
                       ConfigureExplain);

}  // namespace
}  // namespace weir::app::check_command
