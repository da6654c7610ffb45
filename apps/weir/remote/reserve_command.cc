#include <simdjson.h>

#include <chrono>
#include <iostream>
#include <memory>

#include "base/duration.h"
#include "base/got.h"
#include "base/json_writer.h"
#include "command.h"
#include "console.h"
#include "remote/json_fields.h"
#include "remote/remote.h"
#include "remote/subject_words.h"
#include "remote/waits.h"
#include "store/reserve/reservation.h"
#include "weir/quota.h"

// weir reserve: charges an estimate. weir settle: reports the actual cost.

namespace weir::app::reserve_command {
namespace {

namespace dom = simdjson::dom;

struct ReserveWords {
  Remote remote;
  SubjectWords subject;
  std::int64_t cost = 1;
  std::string expires = "10m";
};

struct SettleWords {
  Remote remote;
  std::string reservation;
  std::int64_t cost = 0;
};

bool IsTrue(dom::element object, const char* field) {
  bool value = false;
  return object[field].get(value) == simdjson::SUCCESS && value;
}

/// Passes the answer to `show` unless it is invalid, or --json has printed it.
int AskFor(const Remote& remote, const char* target, const std::string& body, const char* success,
           const std::function<void(dom::element)>& show) {
  return remote.Ask("POST", target, body, [&](const ServiceReply& reply) -> int {
    dom::parser parser;
    dom::element answer;
    if (parser.parse(reply.body).get(answer) != simdjson::SUCCESS) {
      return FailUnexpected();
    }
    if (!remote.json) show(answer);
    return IsTrue(answer, success) ? kExitOk : kExitNo;
  });
}

void PrintLeft(dom::element answer) {
  if (const std::string policy = TextOf(answer, "policy"); !policy.empty()) {
    std::cout << " by " << Shown(policy);
  }
  const std::int64_t limit = NumberOf(answer, "limit");
  if (limit == 0 && IsTrue(answer, "allowed")) {
    std::cout << ": unlimited";
  } else {
    std::cout << ": " << NumberOf(answer, "remaining") << " of " << limit << " left";
  }
}

int RunReserve(const ReserveWords& words) {
  if (!words.subject.Valid()) return kExitUsage;
  const auto lasts = ParseDuration(words.expires);
  if (!lasts.ok()) {
    std::cerr << "weir: --expires: " << lasts.error().message << '\n';
    return kExitUsage;
  }
  const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(*lasts);
  if (millis < store::reserve::kShortest || millis > store::reserve::kLongest) {
    std::cerr << "weir: --expires: expected 1ms to " << FormatDuration(store::reserve::kLongest)
              << Got(words.expires) << '\n';
    return kExitUsage;
  }
  const std::string body =
      words.subject.CheckBody(words.cost, {.expires_after_ms = millis.count()});
  return AskFor(words.remote, "/v1/reserve", body, "allowed", [](dom::element answer) {
    std::cout << (IsTrue(answer, "allowed") ? "reserved" : "limited");
    PrintLeft(answer);
    const std::int64_t retry = NumberOf(answer, "retryAfterMs");
    if (retry > 0) std::cout << "; retry in " << Wait(retry);
    if (IsTrue(answer, "never"))
      std::cout << "; the cost exceeds the limit and can never be reserved";
    std::cout << '\n';
    if (const std::string text = TextOf(answer, "reservation"); !text.empty()) {
      std::cout << text << '\n';
    }
  });
}

int RunSettle(const SettleWords& words) {
  const std::string body = JsonObject([&](JsonWriter& json) {
    json.Field("reservation", words.reservation).Field("cost", words.cost);
  });
  return AskFor(words.remote, "/v1/settle", body, "settled", [](dom::element answer) {
    if (!IsTrue(answer, "settled")) {
      std::cout << "nothing to settle: already settled or expired\n";
      return;
    }
    std::cout << "settled";
    PrintLeft(answer);
    if (!IsTrue(answer, "allowed")) {
      std::cout << "; in debt for " << Wait(NumberOf(answer, "retryAfterMs"));
    }
    std::cout << '\n';
  });
}

void ConfigureReserve(Syntax word) {
  auto words = std::make_shared<ReserveWords>();
  words->subject.AddTo(word, "A bare key, such as user-123");
  word.AddOption("--cost", words->cost, "Estimated cost")
      .Between(std::int64_t{1}, kMaxLimit)
      .ShowDefault();
  word.AddOption("--expires", words->expires, "How long the reservation lasts").ShowDefault();
  words->remote.AddTo(word);
  word.Footer(
      "Prints the reservation on a line of its own. Exits with 0 if reserved and 1 if limited.\n\n"
      "  weir reserve user-123 --cost 4000 --expires 5m");
  word.OnRun([words] { return RunReserve(*words); });
}

void ConfigureSettle(Syntax word) {
  auto words = std::make_shared<SettleWords>();
  word.AddOption("reservation", words->reservation, "The reservation, as printed by reserve")
      .Required();
  word.AddOption("--cost", words->cost, "The actual cost; 0 returns everything")
      .Between(std::int64_t{0}, kMaxLimit)
      .Required();
  words->remote.AddTo(word);
  word.Footer("Exits with 0 if settled and 1 if there was nothing to settle.");
  word.OnRun([words] { return RunSettle(*words); });
}

const Command kReserve("reserve", "Reserve permits for an estimated cost.", ConfigureReserve);
const Command kSettle("settle", "Settle a reservation at its actual cost.", ConfigureSettle);

}  // namespace
}  // namespace weir::app::reserve_command
