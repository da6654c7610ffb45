#include "notify/api/notify_json.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <utility>

#include "base/duration.h"
#include "base/error.h"
#include "base/got.h"
#include "base/json_writer.h"
#include "notify/event.h"
#include "protocol/http/json_body.h"

namespace weir::notify {
namespace {

namespace dom = simdjson::dom;

/// The names of fields that have two.
constexpr std::array<std::pair<const char*, const char*>, 5> kNames = {
    {{"userId", "user_id"},
     {"rateLimit", "rate_limit"},
     {"timeWindow", "time_window"},
     {"keepCount", "keep_count"},
     {"idempotencyKey", "idempotency_key"}}};

/// The fields of a body under either of their names; records which are missing.
class Fields {
 public:
  static Result<Fields> Parse(std::string_view body) {
    Fields fields;
    Result<dom::object> object = fields.json_.Parse(body);
    if (!object.ok()) return object.error();
    fields.object_ = *object;
    return fields;
  }

  std::optional<dom::element> Find(const char* name, const char* column) const {
    for (const char* wanted : {name, column}) {
      dom::element element;
      if (object_[wanted].get(element) == simdjson::SUCCESS && !element.is_null()) return element;
    }
    return std::nullopt;
  }

  std::optional<dom::element> Require(const char* name, const char* column) {
    std::optional<dom::element> element = Find(name, column);
    if (!element) missing_ += (missing_.empty() ? "" : ", ") + std::string(name);
    return element;
  }

  /// Also refuses a field that is there under both of its names: clients differ in which they take.
  Status CheckSpelling(std::span<const std::string_view> known) const {
    if (Status s = http::CheckSpelling(object_, known); !s.ok()) return s;
    for (const auto& [name, column] : kNames) {
      if (!http::HasField(object_, name) || !http::HasField(object_, column)) continue;
      return Invalid(std::string(name) + " and " + column +
                     " are the same field; give one of them");
    }
    return {};
  }

  Status Complete() const {
    if (missing_.empty()) return {};
    return Invalid("missing required fields: " + missing_);
  }

 private:
  http::JsonBody json_;
  dom::object object_;
  std::string missing_;
};

// An ID that is a number in the client's system may be sent as one.
Result<std::string> Id(const dom::element& element) {
  std::string_view text;
  if (element.get(text) == simdjson::SUCCESS) return std::string(text);
  std::int64_t number = 0;
  if (element.get(number) == simdjson::SUCCESS) return std::to_string(number);
  return Invalid("userId must be a string" + GotJson(simdjson::minify(element)));
}

Result<std::string> Text(const dom::element& element, const char* name) {
  std::string_view text;
  if (element.get(text) == simdjson::SUCCESS) return std::string(text);
  return Invalid(std::string(name) + " must be a string" + GotJson(simdjson::minify(element)));
}

Result<std::int64_t> Number(const dom::element& element, const char* name) {
  std::int64_t number = 0;
  if (element.get(number) == simdjson::SUCCESS) return number;
  return Invalid(std::string(name) + " must be a whole number" +
                 GotJson(simdjson::minify(element)));
}

/// A number is in minutes; text has a unit: "90m", "2h", "PT1H".
Result<std::int64_t> Minutes(const dom::element& element) {
  std::string_view text;
  if (element.get(text) != simdjson::SUCCESS) return Number(element, "timeWindow");
  const Result<std::chrono::nanoseconds> span = ParseDuration(text);
  if (!span.ok()) return Invalid("timeWindow: " + span.error().message);
  if (*span % std::chrono::minutes(1) != std::chrono::nanoseconds(0)) {
    return Invalid("timeWindow must be whole minutes" + Got(text));
  }
  return *span / std::chrono::minutes(1);
}

void AppendName(JsonWriter& json, const notify::UserLimit& limit) {
  const notify::RowName name = notify::SplitRowName(limit.user_id);
  json.Field("userId", name.user_id);
  if (!name.channel.empty()) json.Field("channel", name.channel);
}

void AppendSettings(JsonWriter& json, const notify::UserLimit& limit) {
  AppendName(json, limit);
  json.Field("rateLimit", limit.rate_limit).Field("timeWindow", limit.time_window);
}

/// Parses the limit in a body; without a user in the path, the body must name one.
Result<notify::UserLimit> LimitIn(std::string_view body, std::optional<std::string> user_id) {
  constexpr std::array<std::string_view, 6> kKnown = {"userId",     "user_id",    "rateLimit",
                                                      "rate_limit", "timeWindow", "time_window"};
  Result<Fields> fields = Fields::Parse(body);
  if (!fields.ok()) return fields.error();
  if (Status s = fields->CheckSpelling(kKnown); !s.ok()) return s.error();
  std::optional<dom::element> user;
  if (!user_id) user = fields->Require("userId", "user_id");
  const std::optional<dom::element> limit = fields->Require("rateLimit", "rate_limit");
  const std::optional<dom::element> window = fields->Require("timeWindow", "time_window");
  if (Status s = fields->Complete(); !s.ok()) return s.error();
  if (!user_id) {
    Result<std::string> id = Id(*user);
    if (!id.ok()) return id.error();
    user_id = std::move(*id);
  }
  Result<std::int64_t> rate = Number(*limit, "rateLimit");
  if (!rate.ok()) return rate.error();
  Result<std::int64_t> minutes = Minutes(*window);
  if (!minutes.ok()) return minutes.error();
  notify::UserLimit parsed{std::move(*user_id), *rate, *minutes, 0, 0};
  if (Status s = notify::CheckLimit(parsed); !s.ok()) return s.error();
  return parsed;
}

}  // namespace

Result<notify::UserLimit> ParseLimit(std::string_view body) { return LimitIn(body, std::nullopt); }

Result<notify::UserLimit> ParseChannelLimit(std::string_view body, const std::string& user_id,
                                            const std::string& channel) {
  if (Status s = notify::CheckChannel(channel); !s.ok()) return s.error();
  Result<notify::UserLimit> limit = LimitIn(body, user_id);
  if (limit.ok()) limit->user_id = notify::ChannelKey(user_id, channel);
  return limit;
}

Result<bool> ParseKeepCount(std::string_view body) {
  constexpr std::array<std::string_view, 2> kKnown = {"keepCount", "keep_count"};
  Result<Fields> fields = Fields::Parse(body);
  if (!fields.ok()) return fields.error();
  // If it were misspelled and ignored, the user would get a full quota.
  if (Status s = fields->CheckSpelling(kKnown); !s.ok()) return s.error();
  const std::optional<dom::element> field = fields->Find("keepCount", "keep_count");
  bool keep = false;
  if (field && field->get(keep) != simdjson::SUCCESS)
    return Invalid("keepCount must be a boolean" + GotJson(simdjson::minify(*field)));
  return keep;
}

Result<notify::SendRequest> ParseSend(std::string_view body, std::string_view key) {
  // Without its recipient or its key, a message would go elsewhere, or be sent twice.
  constexpr std::array<std::string_view, 7> kKnown = {
      "userId", "user_id", "message", "idempotencyKey", "idempotency_key", "channel", "recipient"};
  Result<Fields> fields = Fields::Parse(body);
  if (!fields.ok()) return fields.error();
  if (Status s = fields->CheckSpelling(kKnown); !s.ok()) return s.error();
  const std::optional<dom::element> user = fields->Require("userId", "user_id");
  const std::optional<dom::element> message = fields->Require("message", "message");
  if (Status s = fields->Complete(); !s.ok()) return s.error();
  Result<std::string> id = Id(*user);
  if (!id.ok()) return id.error();
  Result<std::string> text = Text(*message, "message");
  if (!text.ok()) return text.error();
  notify::SendRequest request{std::move(*id), std::move(*text), std::string(key)};
  const std::optional<dom::element> field = fields->Find("idempotencyKey", "idempotency_key");
  if (field && key.empty()) {
    Result<std::string> given = Text(*field, "idempotencyKey");
    if (!given.ok()) return given.error();
    request.idempotency_key = std::move(*given);
  }
  if (const std::optional<dom::element> channel = fields->Find("channel", "channel")) {
    Result<std::string> given = Text(*channel, "channel");
    if (!given.ok()) return given.error();
    request.channel = std::move(*given);
  }
  if (const std::optional<dom::element> recipient = fields->Find("recipient", "recipient")) {
    Result<std::string> given = Text(*recipient, "recipient");
    if (!given.ok()) return given.error();
    request.recipient = std::move(*given);
  }
  if (Status s = notify::CheckSend(request); !s.ok()) return s.error();
  return request;
}

std::string StateBody(const notify::UserLimit& limit, notify::Micros now) {
  return JsonObject([&](JsonWriter& json) {
    AppendSettings(json, limit);
    json.Field("currentCount", limit.Expired(now) ? 0 : limit.current_count);
  });
}

std::string LimitBody(const notify::UserLimit& limit) {
  return JsonObject([&](JsonWriter& json) {
    AppendSettings(json, limit);
    json.Field("currentCount", limit.current_count)
        .Field("lastRefreshTime", notify::FormatTime(limit.last_refresh_time));
  });
}

std::string QuotaBody(const notify::UserLimit& limit, notify::Micros now) {
  const bool running = !limit.Expired(now);
  const std::int64_t used = running ? limit.current_count : 0;
  return JsonObject([&](JsonWriter& json) {
    AppendName(json, limit);
    json.Field("limit", limit.rate_limit)
        .Field("used", used)
        .Field("remaining", std::max<std::int64_t>(limit.rate_limit - used, 0));
    if (running) json.Field("resetsAt", notify::FormatTime(limit.window_end()));
  });
}

std::string SentBody(const notify::SendAnswer& answer, std::string_view user_id) {
  return JsonObject([&](JsonWriter& json) {
    json.Field("status", "QUEUED")  // delivery happens later, and may fail
        .Field("eventId", answer.event_id)
        .Field("userId", user_id)
        .Field("remaining", answer.remaining)
        .Field("resetsAt", notify::FormatTime(answer.resets_at));
  });
}

}  // namespace weir::notify
