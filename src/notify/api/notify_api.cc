#include "notify/api/notify_api.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <utility>

#include "base/json_writer.h"
#include "notify/api/notify_json.h"
#include "protocol/http/error.h"
#include "protocol/http/query.h"

namespace weir::notify {
namespace {

using http::ErrorResponse;
using http::Reply;
using http::Request;
using http::Response;

enum SendResult : std::size_t {
  kSent,
  kReplayed,
  kLimited,
  kUnknown,
  kInvalid,
  kUnavailable,
  kResults
};
constexpr std::array<std::string_view, kResults> kResultNames = {
    "sent", "replayed", "limited", "unknown_user", "invalid", "unavailable"};

Response UnknownUser(std::string_view user) {
  return ErrorResponse(404, "no configuration exists for user '" + std::string(user) +
                                "'; create it with `weir notify config` (POST /api/config)");
}

Response UnknownChannel(std::string_view user, std::string_view channel) {
  return ErrorResponse(404, "no limit exists for channel '" + std::string(channel) + "' of user '" +
                                std::string(user) + "'");
}

std::int64_t SecondsUntil(Micros time, Micros now) {
  return std::max<std::int64_t>((time - now + 999'999) / 1'000'000, 1);
}

void AddLimitHeaders(Response& response, const SendAnswer& answer, Micros now) {
  response.headers.emplace_back("X-RateLimit-Limit", std::to_string(answer.rate_limit));
  response.headers.emplace_back("X-RateLimit-Remaining", std::to_string(answer.remaining));
  response.headers.emplace_back("X-RateLimit-Reset",
                                std::to_string(SecondsUntil(answer.resets_at, now)));
}

Response LimitedResponse(const SendAnswer& answer, const std::string& user,
                         const std::string& channel, Micros now) {
  const std::string seconds = std::to_string(SecondsUntil(answer.resets_at, now));
  const std::string where = answer.of_channel ? " on channel '" + channel + "'" : "";
  Response response =
      ErrorResponse(429, "rate limit exceeded for user '" + user + "'" + where + ": all " +
                             std::to_string(answer.rate_limit) +
                             " of this window are used; try again in " + seconds + " s");
  response.headers.emplace_back("Retry-After", seconds);
  AddLimitHeaders(response, answer, now);
  return response;
}

}  // namespace

struct NotifyApi::Parts {
  Parts(notify::Gateway& given_gateway, const Clock& given_clock, Probes given_probes,
        DefaultCap given_cap)
      : gateway(given_gateway),
        clock(given_clock),
        probes(std::move(given_probes)),
        cap(given_cap),
        channels(given_gateway, given_clock) {}

  void Configure(const Request& request, Reply reply);
  void Send(const Request& request, Reply reply);
  void GetConfig(const Request& request, Reply reply);
  void RemoveConfig(const Request& request, Reply reply);
  void GetQuota(const Request& request, Reply reply);
  void Report(const Request& request, Reply reply);

  void Note(SendResult result) { sends[result].fetch_add(1, std::memory_order_relaxed); }
  std::uint64_t Count(SendResult result) const {
    return sends[result].load(std::memory_order_relaxed);
  }
  void Observe(Nanos nanos) {
    const std::lock_guard lock(latency_mutex);
    latency.Observe(nanos);
  }
  void SendOrEnsure(SendRequest request, notify::Gateway::Done<SendAnswer> done);
  Response ResponseOf(Result<SendAnswer> answer, const std::string& user,
                      const std::string& channel);
  template <typename Body>
  void WithRow(const Request& request, Reply reply, Body body);

  notify::Gateway& gateway;
  const Clock& clock;
  const Probes probes;
  const DefaultCap cap;
  ChannelApi channels;
  std::array<std::atomic<std::uint64_t>, kResults> sends{};
  mutable std::mutex latency_mutex;  // answers arrive on several threads
  telemetry::LocalHistogram latency;
};

void NotifyApi::Parts::Configure(const Request& request, Reply reply) {
  SaveLimit(gateway, ParseLimit(request.body), request.body, std::move(reply));
}

void NotifyApi::Parts::Send(const Request& request, Reply reply) {
  Result<notify::SendRequest> send = ParseSend(request.body, request.Find("Idempotency-Key"));
  if (!send.ok()) {
    Note(kInvalid);
    return reply(ErrorResponse(send.error()));
  }
  const Nanos start = SystemClock::Get().Now();
  std::string user = send->user_id;
  std::string channel = send->channel;
  SendOrEnsure(std::move(*send), [this, start, user = std::move(user), channel = std::move(channel),
                                  reply = std::move(reply)](Result<SendAnswer> answer) {
    Observe(SystemClock::Get().Now() - start);
    reply(ResponseOf(std::move(answer), user, channel));
  });
}

/// A user without a limit gets the default one, if configured, with the first send.
void NotifyApi::Parts::SendOrEnsure(SendRequest request, notify::Gateway::Done<SendAnswer> done) {
  if (cap.rate_limit == 0) return gateway.Send(std::move(request), std::move(done));
  SendRequest again = request;
  gateway.Send(std::move(request),
               [this, again = std::move(again), done = std::move(done)](Result<SendAnswer> answer) {
                 if (!answer.ok() || answer->outcome != Outcome::kUnknownUser)
                   return done(std::move(answer));
                 gateway.Ensure({again.user_id, cap.rate_limit, cap.time_window, 0, 0},
                                [this, again, done](const Result<bool>& made) {
                                  if (!made.ok()) return done(made.error());
                                  gateway.Send(again, done);
                                });
               });
}

Response NotifyApi::Parts::ResponseOf(Result<SendAnswer> answer, const std::string& user,
                                      const std::string& channel) {
  if (!answer.ok()) {
    Note(kUnavailable);
    return ErrorResponse(answer.error());
  }
  const Micros now = notify::NowMicros(clock);
  switch (answer->outcome) {
    case Outcome::kUnknownUser:
      Note(kUnknown);
      return UnknownUser(user);
    case Outcome::kKeyReused:
      Note(kInvalid);
      return ErrorResponse(400, "Idempotency-Key was already used for a different message");
    case Outcome::kLimited:
      Note(kLimited);
      return LimitedResponse(*answer, user, channel, now);
    case Outcome::kSent:
      break;
  }
  Note(answer->replayed ? kReplayed : kSent);
  Response response = Response::Json(SentBody(*answer, user));
  AddLimitHeaders(response, *answer, now);
  if (answer->replayed) response.headers.emplace_back("Idempotency-Replayed", "true");
  return response;
}

template <typename Body>
void NotifyApi::Parts::WithRow(const Request& request, Reply reply, Body body) {
  std::string user = request.params.at(0);
  if (Status s = notify::CheckUserId(user); !s.ok()) return reply(ErrorResponse(s.error()));
  const auto query = http::Query::ReadKnown(request.query, {"channel"});
  if (!query.ok()) return reply(ErrorResponse(query.error()));
  const std::optional<std::string> channel = query->Find("channel");
  if (channel) {
    if (Status s = notify::CheckChannel(*channel); !s.ok()) return reply(ErrorResponse(s.error()));
  }
  gateway.Find(channel ? notify::ChannelKey(user, *channel) : user,
               [user, channel, reply = std::move(reply),
                body](Result<std::optional<notify::UserLimit>> row) {
                 if (!row.ok()) return reply(ErrorResponse(row.error()));
                 if (!row->has_value()) {
                   return reply(channel ? UnknownChannel(user, *channel) : UnknownUser(user));
                 }
                 reply(Response::Json(body(**row)));
               });
}

void NotifyApi::Parts::GetConfig(const Request& request, Reply reply) {
  WithRow(request, std::move(reply), LimitBody);
}

void NotifyApi::Parts::RemoveConfig(const Request& request, Reply reply) {
  std::string user = request.params.at(0);
  if (Status s = notify::CheckUserId(user); !s.ok()) return reply(ErrorResponse(s.error()));
  gateway.Remove(user, [user, reply = std::move(reply)](const Result<bool>& removed) {
    if (!removed.ok()) return reply(ErrorResponse(removed.error()));
    if (!*removed) return reply(UnknownUser(user));
    reply(Response::NoContent());
  });
}

void NotifyApi::Parts::GetQuota(const Request& request, Reply reply) {
  WithRow(request, std::move(reply), [this](const notify::UserLimit& limit) {
    return QuotaBody(limit, notify::NowMicros(clock));
  });
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): handlers share one signature.
void NotifyApi::Parts::Report(const Request&, Reply reply) {
  reply(Response::Json(JsonObject([this](JsonWriter& json) {
    json.Field("sends", Count(kSent))
        .Field("replayed", Count(kReplayed))
        .Field("limited", Count(kLimited))
        .Field("unknownUser", Count(kUnknown))
        .Field("invalid", Count(kInvalid))
        .Field("unavailable", Count(kUnavailable))
        .Field("waiting", gateway.waiting());
    const std::optional<SenderFigures> sender = probes.Figures();
    const auto known = [&json](std::string_view name, std::optional<std::int64_t> number) {
      json.Key(name);
      if (number) {
        json.Value(*number);
      } else {
        json.Null();
      }
    };
    const auto of_sender = [&](std::string_view name, auto figure) {
      known(name, sender ? std::optional<std::int64_t>(figure(*sender)) : std::nullopt);
    };
    // Without a sender, no one has counted the queue.
    known("queue", sender && sender->senders > 0 ? std::optional(sender->lag) : std::nullopt);
    known("deadLetters", probes.DeadLetters());
    of_sender("delivered", [](const SenderFigures& s) { return s.delivered; });
    of_sender("retries", [](const SenderFigures& s) { return s.retries; });
    of_sender("meanDeliveryMs", [](const SenderFigures& s) { return s.mean_time() / 1000; });
    of_sender("senders", [](const SenderFigures& s) { return s.senders; });
  })));
}

NotifyApi::NotifyApi(notify::Gateway& gateway, const Clock& clock, Probes probes, DefaultCap cap)
    : parts_(std::make_unique<Parts>(gateway, clock, std::move(probes), cap)) {}
NotifyApi::~NotifyApi() = default;

ChannelApi& NotifyApi::channels() { return parts_->channels; }

admin::Undoable NotifyApi::limits() {
  notify::Gateway* const gateway = &parts_->gateway;
  const Clock* const clock = &parts_->clock;
  return {
      .kind = "notify",
      .name_of = [](const Request& request) -> std::optional<std::string> {
        if (request.method == "DELETE") return request.params.at(0);
        Result<notify::UserLimit> limit = ParseLimit(request.body);
        if (!limit.ok()) return std::nullopt;
        return std::move(limit->user_id);
      },
      .read =
          [gateway, clock](std::string user,
                           const admin::Undoable::Done<Result<admin::Undoable::State>>& done) {
            gateway->Find(std::move(user), [done,
                                            clock](Result<std::optional<notify::UserLimit>> row) {
              if (!row.ok()) return done(row.error());
              done(row->has_value() ? admin::Undoable::State(StateBody(**row, NowMicros(*clock)))
                                    : admin::Undoable::State());
            });
          },
      .resets_count = ResetsCount,
      .restore =
          [gateway](std::string user, const admin::Undoable::State& wanted,
                    const admin::Undoable::Done<Status>& done) {
            const auto told = [done](const auto& result) {
              done(result.ok() ? Status() : Status(result.error()));
            };
            if (!wanted) return gateway->Remove(std::move(user), told);
            Result<notify::UserLimit> limit = ParseLimit(*wanted);
            if (!limit.ok()) return done(limit.error());
            gateway->Adjust(std::move(*limit), told);
          },
  };
}

void NotifyApi::AddTo(http::Router& router, const Protect& admin, const Protect& change) {
  Parts* const parts = parts_.get();
  const auto bind = [parts](auto method) { return http::Bind(parts, method); };
  router.Add("POST", "/api/config", change(bind(&Parts::Configure)));
  router.Add("POST", "/api/send", bind(&Parts::Send));
  router.Add("GET", "/api/config/{userId}", bind(&Parts::GetConfig));
  router.Add("DELETE", "/api/config/{userId}", change(bind(&Parts::RemoveConfig)));
  router.Add("GET", "/api/quota/{userId}", bind(&Parts::GetQuota));
  router.Add("GET", "/admin/notify", admin(bind(&Parts::Report)));
}

void NotifyApi::Collect(telemetry::TextWriter& out) const {
  out.Counter("weir_notify_sends_total", "Requests to send a notification, by result.");
  for (std::size_t i = 0; i < kResults; ++i) {
    const telemetry::Label label{"result", kResultNames[i]};
    out.Sample(parts_->Count(static_cast<SendResult>(i)), {&label, 1});
  }
  out.Histogram("weir_notify_latency_seconds", "Time from the request to its response.");
  {
    const std::lock_guard lock(parts_->latency_mutex);
    const telemetry::LocalHistogram* const part = &parts_->latency;
    out.Samples({&part, 1});
  }
  out.Gauge("weir_notify_waiting", "Requests to send that are in progress.");
  out.Sample(static_cast<std::uint64_t>(parts_->gateway.waiting()));
  if (parts_->probes.queue) {
    out.Gauge("weir_notify_queue", "Events waiting for delivery.");
    out.Sample(parts_->probes.queue());
  }
  if (parts_->probes.dead_letters) {
    out.Gauge("weir_notify_dead_letters", "Dead letters not yet replayed or deleted.");
    out.Sample(parts_->probes.dead_letters());
  }
  if (parts_->probes.senders) {
    out.Gauge("weir_notify_senders", "Senders that have reported within the last 15 seconds.");
    out.Sample(static_cast<std::uint64_t>(parts_->probes.senders().senders));
  }
  if (parts_->probes.deliveries) {
    parts_->probes.deliveries()->Collect(out, notify::NowMicros(parts_->clock));
  }
}

}  // namespace weir::notify
