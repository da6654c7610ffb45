#include "policy/policy_words.h"

#include <optional>

#include "base/instant.h"
#include "base/json_writer.h"
#include "policy/duration.h"
#include "remote/json_fields.h"

namespace weir::app {

namespace dom = simdjson::dom;

int ForEachPolicy(const Remote& remote, std::string_view source,
                  const std::function<void(dom::element)>& visit) {
  dom::parser parser;
  std::string cursor;
  const std::string first = "/admin/policies?limit=200&source=" + std::string(source);
  do {
    Result<ServiceReply> page = remote.Exchange("GET", first + "&cursor=" + UrlEscaped(cursor));
    if (!page.ok()) return Fail(page.error());
    if (!page->ok()) return FailRefused(*page);
    dom::array policies;
    if (parser.parse(page->body).get(policies) != simdjson::SUCCESS) {
      return Fail({Code::kUnavailable, "unexpected response"});
    }
    for (const dom::element policy : policies) visit(policy);
    cursor = page->Header("x-next-cursor");
  } while (!cursor.empty());
  return kExitOk;
}

std::string StateOf(dom::element policy) {
  if (TextOf(policy, "unlimited") == "true") return "unlimited";
  const std::string state = TextOf(policy, "shadow") == "true" ? "shadow" : "enforced";
  return TextOf(policy, "override").empty() ? state : state + " by override";
}

Result<std::string> EndValue(const std::string& expires) {
  if (expires.empty()) return std::string();
  if (expires == "never") return std::string("null");
  std::optional<Nanos> instant = ParseInstant(expires);
  if (!instant) {
    const auto duration = policy::ParseDuration(expires);
    if (!duration.ok()) {
      return Error{Code::kInvalidArgument,
                   "--expires must be a time like 2030-01-31T12:00:00Z, a duration like 2h, or "
                   "never"};
    }
    instant = SystemClock::Get().Now() + duration->count();
  }
  return JsonText([&](JsonWriter& json) { json.Value(FormatInstant(*instant)); });
}

}  // namespace weir::app
