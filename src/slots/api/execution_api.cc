#include "slots/api/execution_api.h"

#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/got.h"
#include "base/json_writer.h"
#include "protocol/http/error.h"
#include "protocol/http/uri.h"
#include "slots/api/answers.h"
#include "slots/api/execution_json.h"
#include "weir/clock.h"

namespace weir::slots {
namespace {

constexpr std::size_t kDefaultPage = 100;
constexpr std::size_t kPlanPage = 10'000;
constexpr Nanos kNanosPerMilli = 1'000'000;

// "2025-06-01T12:00:00Z/pay-1": the last event of the previous page.
Status ReadCursor(const std::string& text, DueQuery& query) {
  const std::size_t slash = text.find('/');
  Result<Millis> time = ParseInstant(text.substr(0, slash));
  if (slash == std::string::npos || !time.ok()) {
    return Invalid("after must be the \"next\" of the previous page");
  }
  query.after_time = *time;
  query.after_event = text.substr(slash + 1);
  return {};
}

Result<DueQuery> ReadQuery(const Request& request) {
  const Result<http::Query> given =
      http::Query::ReadKnown(request.query, {"config", "before", "limit", "state", "after"});
  if (!given.ok()) return given.error();
  DueQuery query;
  query.config = given->Find("config").value_or("");
  if (query.config.empty()) return Invalid("config is missing");
  query.before = SystemClock::Get().Now() / kNanosPerMilli;
  if (const auto before = given->Find("before")) {
    Result<Millis> instant = ParseInstant(*before);
    if (!instant.ok()) return Invalid("before " + instant.error().message);
    query.before = *instant;
  }
  const Result<std::int64_t> limit = given->Number("limit", 1, kMaxDuePage, kDefaultPage);
  if (!limit.ok()) return limit.error();
  query.limit = static_cast<std::size_t>(*limit);
  if (const auto state = given->Find("state")) {
    const std::optional<State> known = ParseState(*state);
    if (!known)
      return Invalid("state must be SCHEDULED, CLAIMED, DONE, FAILED or CANCELLED" + Got(*state));
    query.state = *known;
  }
  if (const auto after = given->Find("after")) {
    if (Status s = ReadCursor(*after, query); !s.ok()) return s.error();
  }
  return query;
}

std::string DueBody(const std::vector<Event>& events, std::size_t limit) {
  return JsonObject([&](JsonWriter& json) {
    json.Key("events").BeginArray();
    for (const Event& event : events) AppendEvent(json, event);
    json.EndArray();
    if (events.size() != limit) return;
    const Slot& last = events.back().slot;
    json.Field("next", FormatInstant(last.scheduled) + "/" + last.event_id);
  });
}

void AppendFinished(JsonWriter& json, std::string_view event, Finished finished, bool failed) {
  json.BeginObject()
      .Field("eventId", event)
      .Field("status", FinishedName(finished, failed))
      .EndObject();
}

/// Backlogs whose plans are being read, one after the other.
struct Listing {
  std::vector<Backlog> backlogs;
  std::string body = {};
  JsonWriter json{body};
  Reply reply = {};
};

void AppendNext(SlotStore& store, const std::shared_ptr<Listing>& listing, std::size_t at) {
  if (at == listing->backlogs.size()) {
    listing->json.EndArray().EndObject();
    return listing->reply(Response::Json(std::move(listing->body)));
  }
  const Backlog& backlog = listing->backlogs[at];
  store.ListWindows(backlog.config, backlog.window_start, kPlanPage,
                    [&store, listing, at](Result<std::vector<WindowLoad>> windows) {
                      if (!windows.ok()) return listing->reply(ErrorResponse(windows.error()));
                      const Backlog& one = listing->backlogs[at];
                      AppendBacklog(listing->json, one,
                                    CaughtUpBy(one, *windows, windows->size() < kPlanPage));
                      AppendNext(store, listing, at + 1);
                    });
}

}  // namespace

Response UnknownEvent(const std::string& event) {
  return ErrorResponse(404, "eventId: '" + event + "' has no slot");
}

Response EventError(const Error& error, const std::string& event) {
  if (error.code != Code::kFailedPrecondition) return ErrorResponse(error);
  return ErrorResponse(
      409, "eventId: '" + event + "' is " + error.message +
               ", which does not allow this; see `weir slots show` (GET /api/v1/slots/{eventId})");
}

void ExecutionApi::Look(const Request& request, Reply reply) {
  std::string event = request.params.at(0);
  store_.Look(event, [event, reply = std::move(reply)](Result<std::optional<Event>> found) {
    if (!found.ok()) return reply(ErrorResponse(found.error()));
    if (!found->has_value()) return reply(UnknownEvent(event));
    reply(Response::Json(JsonText([&](JsonWriter& json) { AppendEvent(json, **found); })));
  });
}

void ExecutionApi::Due(const Request& request, Reply reply) {
  Result<DueQuery> query = ReadQuery(request);
  if (!query.ok()) return reply(ErrorResponse(query.error()));
  const std::size_t limit = query->limit;
  const std::string config = query->config;
  store_.ListDue(std::move(*query), [this, limit, config,
                                     reply = std::move(reply)](Result<std::vector<Event>> events) {
    if (!events.ok()) return reply(ErrorResponse(events.error()));
    if (!events->empty()) return reply(Response::Json(DueBody(*events, limit)));
    // A misspelled name must not be answered with "nothing is due".
    store_.ListVersions(config, [limit, config, reply](Result<std::vector<Config>> versions) {
      if (!versions.ok()) return reply(ErrorResponse(versions.error()));
      if (versions->empty())
        return reply(ErrorResponse(404, "there is no config '" + config + "'"));
      reply(Response::Json(DueBody({}, limit)));
    });
  });
}

void ExecutionApi::Claim(const Request& request, const Claimed& claimed, Reply reply) {
  Result<ClaimRequest> claim = ParseClaim(request.body);
  if (!claim.ok()) return reply(ErrorResponse(claim.error()));
  claim->random = Random();
  const std::string config = claim->config;
  store_.ClaimDue(std::move(*claim), [this, config, claimed, &request,
                                      reply = std::move(reply)](Result<slots::Claim> given) {
    if (!given.ok()) return reply(ErrorResponse(given.error()));
    watch_.Count(*given);
    if (claimed && !given->events.empty()) claimed(request, config, given->events.size());
    reply(Response::Json(ClaimBody(*given)));
  });
}

void ExecutionApi::FinishParsed(Result<std::vector<Finish>> ends, Reply reply) {
  if (!ends.ok()) return reply(ErrorResponse(ends.error()));
  std::vector<std::string> names;
  std::vector<bool> again;
  for (Finish& end : *ends) {
    end.random = Random();
    names.push_back(end.event_id);
    again.push_back(end.retry_at.has_value());
  }
  const bool failed = ends->front().failed;
  store_.FinishMany(std::move(*ends),
                    [this, failed, again = std::move(again), names = std::move(names),
                     reply = std::move(reply)](Result<std::vector<Finished>> told) {
                      if (!told.ok()) return reply(ErrorResponse(told.error()));
                      std::string body;
                      JsonWriter json(body);
                      json.BeginObject().Key("results").BeginArray();
                      for (std::size_t i = 0; i < names.size(); ++i) {
                        watch_.Count((*told)[i], failed, again[i]);
                        AppendFinished(json, names[i], (*told)[i], failed);
                      }
                      json.EndArray().EndObject();
                      reply(Response::Json(std::move(body)));
                    });
}

void ExecutionApi::FinishOne(Result<Finish> end, Reply reply) {
  if (!end.ok()) return reply(ErrorResponse(end.error()));
  end->random = Random();
  const std::string event = end->event_id;
  const bool failed = end->failed;
  const bool again = end->retry_at.has_value();
  std::vector<Finish> ends;
  ends.push_back(std::move(*end));
  store_.FinishMany(std::move(ends), [this, event, failed, again, reply = std::move(reply)](
                                         Result<std::vector<Finished>> told) {
    if (!told.ok()) return reply(ErrorResponse(told.error()));
    watch_.Count(told->front(), failed, again);
    if (told->front() == Finished::kUnknown) return reply(UnknownEvent(event));
    if (told->front() == Finished::kLost) {
      return reply(ErrorResponse(409, "attempt: this claim of '" + event +
                                          "' has ended; the event may have been claimed again"));
    }
    reply(Response::Json(
        JsonText([&](JsonWriter& json) { AppendFinished(json, event, told->front(), failed); })));
  });
}

void ExecutionApi::FinishMany(const Request& request, bool failed, Reply reply) {
  bodies_.Read(request.body, std::move(reply), [this, failed](std::string_view body, Reply answer) {
    FinishParsed(ParseFinishes(body, failed), std::move(answer));
  });
}

void ExecutionApi::Done(const Request& request, Reply reply) {
  FinishMany(request, false, std::move(reply));
}

void ExecutionApi::Failed(const Request& request, Reply reply) {
  FinishMany(request, true, std::move(reply));
}

void ExecutionApi::DoneOne(const Request& request, Reply reply) {
  FinishOne(ParseFinish(request.body, request.params.at(0), false), std::move(reply));
}

void ExecutionApi::FailedOne(const Request& request, Reply reply) {
  FinishOne(ParseFinish(request.body, request.params.at(0), true), std::move(reply));
}

void ExecutionApi::Backlogs(const Request&, Reply reply) {
  store_.ListBacklogs(0, [this, reply = std::move(reply)](Result<std::vector<Backlog>> backlogs) {
    if (!backlogs.ok()) return reply(ErrorResponse(backlogs.error()));
    auto listing = std::make_shared<Listing>();
    listing->backlogs = std::move(*backlogs);
    listing->reply = reply;
    listing->json.BeginObject().Key("configs").BeginArray();
    AppendNext(store_, listing, 0);
  });
}

void ExecutionApi::AddTo(http::Router& router, const Protect& admin, const Claimed& claimed) {
  const auto bind = [this](auto method) { return http::Bind(this, method); };
  router.Add("GET", "/api/v1/slots/due", bind(&ExecutionApi::Due));
  router.Add("POST", "/api/v1/slots/claim", [this, claimed](const Request& request, Reply reply) {
    Claim(request, claimed, std::move(reply));
  });
  router.AddLarge("POST", "/api/v1/slots/done", bind(&ExecutionApi::Done));
  router.AddLarge("POST", "/api/v1/slots/failed", bind(&ExecutionApi::Failed));
  router.Add("GET", "/api/v1/slots/{eventId}", bind(&ExecutionApi::Look));
  router.Add("POST", "/api/v1/slots/{eventId}/done", bind(&ExecutionApi::DoneOne));
  router.Add("POST", "/api/v1/slots/{eventId}/failed", bind(&ExecutionApi::FailedOne));
  router.Add("GET", "/admin/rate-limit/backlog", admin(bind(&ExecutionApi::Backlogs)));
}

}  // namespace weir::slots
