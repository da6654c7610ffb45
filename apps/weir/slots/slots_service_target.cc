#include <simdjson.h>

#include <utility>

#include "base/json_writer.h"
#include "protocol/http/error.h"
#include "remote/remote.h"
#include "remote/service_client.h"
#include "slots/api/calendar_json.h"
#include "slots/slots_target.h"

// Slots of a running service: a connection per call, which is cheap next to a batch of thousands.

namespace weir::app {
namespace {

namespace dom = simdjson::dom;

std::string Text(const dom::object& object, const char* field) {
  std::string_view text;
  return object[field].get(text) == simdjson::SUCCESS ? std::string(text) : std::string();
}

std::int64_t Number(const dom::object& object, const char* field) {
  std::int64_t number = 0;
  return object[field].get(number) == simdjson::SUCCESS ? number : 0;
}

slots::Millis Instant(const dom::object& object, const char* field) {
  Result<slots::Millis> instant = slots::ParseInstant(Text(object, field));
  return instant.ok() ? *instant : 0;
}

// kInvalidArgument: this request fails now and later.
Code CodeOf(int status) {
  switch (status) {
    case 401:
      return Code::kUnauthenticated;
    case 403:
      return Code::kPermissionDenied;
    case 404:
      return Code::kNotFound;
    case 408:
    case 429:
      return Code::kUnavailable;
    default:
      return status >= 500 ? Code::kUnavailable : Code::kInvalidArgument;
  }
}

slots::Answer ReadAnswer(const dom::object& object) {
  const std::string status = Text(object, "status");
  slots::Answer answer;
  answer.outcome = status == "NEW"              ? slots::Outcome::kNew
                   : status == "EXISTING"       ? slots::Outcome::kExisting
                   : status == "CONFLICT"       ? slots::Outcome::kConflict
                   : status == "CANCELLED"      ? slots::Outcome::kCancelled
                   : status == "PAST"           ? slots::Outcome::kPast
                   : status == "UNKNOWN_CONFIG" ? slots::Outcome::kUnknownConfig
                   : status == "UNAVAILABLE"    ? slots::Outcome::kUnanswered
                                                : slots::Outcome::kExhausted;
  answer.slot = {Text(object, "eventId"),        Text(object, "configName"),
                 Text(object, "tenant"),         Instant(object, "requestedTime"),
                 Instant(object, "windowStart"), Instant(object, "scheduledTime")};
  return answer;
}

slots::Config ReadConfig(const dom::object& object) {
  slots::Config config{.name = Text(object, "configName")};
  config.version = Number(object, "version");
  Result<slots::Millis> size = slots::ParseDuration(Text(object, "windowSize"));
  config.window_size = size.ok() ? *size : 1;
  config.max_per_window = Number(object, "maxPerWindow");
  config.headroom = Number(object, "headroom");
  static_cast<void>(slots::ReadTiming(object, config));  // it was validated when it was created
  return config;
}

void AppendFinish(JsonWriter& json, const slots::Finish& end) {
  json.BeginObject()
      .Field("eventId", end.event_id)
      .Field("attempt", end.attempt)
      .Field("endedAgoMs", end.ago);
  if (end.failed) json.Field("error", end.error);
  if (end.retry_at) {
    json.Field("retryTime", slots::FormatInstant(*end.retry_at)).Field("counts", end.counts);
    if (end.most_failures > 0) json.Field("maxFailures", end.most_failures);
  }
  json.EndObject();
}

/// A running service. Thread-safe: every call has a connection of its own.
class ServiceTarget final : public SlotsTarget {
 public:
  explicit ServiceTarget(ServiceClient client) : client_(std::move(client)) {}

  Result<std::vector<slots::Answer>> Assign(std::vector<slots::Ask> asks) override {
    const std::string body = JsonObject([&](JsonWriter& json) {
      json.Key("events").BeginArray();
      for (const slots::Ask& ask : asks) AppendAsk(json, ask);
      json.EndArray();
    });
    dom::parser parser;
    auto object = Exchange(parser, "POST", "/api/v1/slots/batch", body);
    if (!object.ok()) return object.error();
    dom::array list;
    if ((*object)["slots"].get(list) != simdjson::SUCCESS) return Garbled();
    std::vector<slots::Answer> answers;
    for (dom::element one : list) {
      dom::object fields;
      if (one.get(fields) != simdjson::SUCCESS) return Garbled();
      answers.push_back(ReadAnswer(fields));
    }
    if (answers.size() != asks.size()) return Garbled();
    return answers;
  }

  Result<slots::Config> GetConfig(const std::string& name) override {
    dom::parser parser;
    auto object = Exchange(parser, "GET", "/admin/rate-limit/config/" + UrlEscaped(name), {});
    if (!object.ok()) return object.error();
    return ReadConfig(*object);
  }

  Result<std::vector<slots::WindowLoad>> ListWindows(const std::string& config, slots::Millis from,
                                                     std::size_t limit) override {
    dom::parser parser;
    auto object = Exchange(parser, "GET",
                           "/admin/rate-limit/windows?config=" + UrlEscaped(config) +
                               "&from=" + UrlEscaped(slots::FormatInstant(from)) +
                               "&limit=" + std::to_string(limit),
                           {});
    if (!object.ok()) return object.error();
    dom::object about;
    dom::array list;
    if ((*object)["config"].get(about) != simdjson::SUCCESS ||
        (*object)["windows"].get(list) != simdjson::SUCCESS) {
      return Garbled();
    }
    const slots::Millis size = ReadConfig(about).window_size;
    std::vector<slots::WindowLoad> windows;
    for (dom::element one : list) {
      dom::object fields;
      if (one.get(fields) != simdjson::SUCCESS) return Garbled();
      windows.push_back({Instant(fields, "windowStart"), size, Number(fields, "count"),
                         Number(fields, "carried"), Text(fields, "status") == "OPEN"});
    }
    return windows;
  }

  Result<slots::Findings> Verify() override {
    dom::parser parser;
    auto object = Exchange(parser, "GET", "/admin/rate-limit/verify", {});
    if (!object.ok()) return object.error();
    slots::Findings findings{Number(*object, "windows"), Number(*object, "slots"),
                             Number(*object, "problems")};
    dom::array examples;
    if ((*object)["examples"].get(examples) == simdjson::SUCCESS) {
      for (dom::element one : examples) {
        std::string_view text;
        if (one.get(text) == simdjson::SUCCESS) findings.examples.emplace_back(text);
      }
    }
    return findings;
  }

  Result<slots::Claim> Claim(const slots::ClaimRequest& request) override {
    const std::string body = JsonObject([&](JsonWriter& json) {
      json.Field("config", request.config)
          .Field("max", request.max)
          .Field("leaseMs", request.lease)
          .Field("aheadMs", request.ahead)
          .Field("by", request.by);
    });
    dom::parser parser;
    auto object = Exchange(parser, "POST", "/api/v1/slots/claim", body);
    if (!object.ok()) return object.error();
    dom::array list;
    if ((*object)["events"].get(list) != simdjson::SUCCESS) return Garbled();
    bool capped = false;
    if ((*object)["capped"].get(capped) != simdjson::SUCCESS) return Garbled();
    slots::Claim claim{.now = Instant(*object, "now"), .events = {}, .capped = capped};
    if (const slots::Millis cut_off = Instant(*object, "notAfter"); cut_off > 0) {
      claim.not_after = cut_off;
    }
    for (dom::element one : list) {
      dom::object fields;
      if (one.get(fields) != simdjson::SUCCESS) return Garbled();
      claim.events.push_back({.slot = ReadAnswer(fields).slot,
                              .attempt = Number(fields, "attempt"),
                              .execute_at = Instant(fields, "executeAt"),
                              .lease_until = Instant(fields, "leaseUntil"),
                              .payload = Text(fields, "payload")});
    }
    return claim;
  }

  // Done and failed events are reported by separate calls.
  Result<std::vector<slots::Finished>> Finish(const std::vector<slots::Finish>& ends) override {
    std::vector<slots::Finished> told(ends.size());
    for (const bool failed : {false, true}) {
      if (Status s = FinishOf(ends, failed, told); !s.ok()) return s.error();
    }
    return told;
  }

 private:
  Status FinishOf(const std::vector<slots::Finish>& ends, bool failed,
                  std::vector<slots::Finished>& told) const {
    std::string body;
    JsonWriter json(body);
    json.BeginObject().Key("events").BeginArray();
    std::vector<std::size_t> indexes;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if (ends[i].failed != failed) continue;
      indexes.push_back(i);
      AppendFinish(json, ends[i]);
    }
    json.EndArray().EndObject();
    if (indexes.empty()) return {};
    dom::parser parser;
    auto object =
        Exchange(parser, "POST", failed ? "/api/v1/slots/failed" : "/api/v1/slots/done", body);
    if (!object.ok()) return object.error();
    dom::array list;
    if ((*object)["results"].get(list) != simdjson::SUCCESS || list.size() != indexes.size()) {
      return Garbled();
    }
    std::size_t next = 0;
    for (dom::element one : list) {
      dom::object fields;
      if (one.get(fields) != simdjson::SUCCESS) return Garbled();
      const std::string status = Text(fields, "status");
      told[indexes[next++]] = status == "LOST"       ? slots::Finished::kLost
                              : status == "UNKNOWN"  ? slots::Finished::kUnknown
                              : status == "ALREADY"  ? slots::Finished::kAlready
                              : status == "GIVEN_UP" ? slots::Finished::kGivenUp
                                                     : slots::Finished::kOk;
    }
    return {};
  }

  /// In the words of FailRefused.
  static Error Refusal(int status, const std::string& why) {
    return {CodeOf(status), std::to_string(status) + ": " + why + (status == 401 ? kKeyHint : "")};
  }

  Error Garbled() const { return {Code::kUnavailable, client_.where() + ": unexpected response"}; }

  Result<dom::object> Exchange(dom::parser& parser, const char* method, const std::string& target,
                               const std::string& body) const {
    Result<ServiceReply> reply = client_.Send(method, target, body);
    // What is asked for may be repeated, so it does not matter how far it came.
    if (!reply.ok()) return Error{Code::kUnavailable, reply.error().message};
    dom::object object;
    const bool is_object = parser.parse(reply->body).get(object) == simdjson::SUCCESS;
    if (!reply->ok()) {
      std::string why = is_object ? Text(object, "message") : std::string();
      if (!why.empty()) return Refusal(reply->status, why);
      // A proxy in between answers in a format of its own, which says nothing about the request.
      return Error{Code::kUnavailable,
                   client_.where() + ": status " + std::to_string(reply->status)};
    }
    if (!is_object) return Garbled();
    return object;
  }

  const ServiceClient client_;
};

}  // namespace

void AppendAsk(JsonWriter& json, const slots::Ask& ask) {
  json.BeginObject()
      .Field("eventId", ask.event_id)
      .Field("configName", ask.config)
      .Field("requestedTime", slots::FormatInstant(ask.requested));
  if (!ask.tenant.empty()) json.Field("tenant", ask.tenant);
  if (!ask.payload.empty()) json.Field("payload", ask.payload);
  json.EndObject();
}

Result<std::unique_ptr<SlotsTarget>> OpenService(Result<ServiceClient> client) {
  if (!client.ok()) return client.error();
  return std::unique_ptr<SlotsTarget>(std::make_unique<ServiceTarget>(std::move(*client)));
}

}  // namespace weir::app
