#include "slots/api/slots_api.h"

#include <string>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "protocol/http/error.h"
#include "protocol/http/query.h"
#include "slots/api/answers.h"
#include "slots/api/execution_api.h"
#include "slots/api/slots_json.h"
#include "slots/api/slots_undoable.h"
#include "slots/combiner.h"
#include "slots/config_cache.h"
#include "slots/window.h"
#include "weir/clock.h"

namespace weir::slots {
namespace {

constexpr std::size_t kWindowPage = 10'000;
constexpr std::int64_t kMaxForecast = 1'000'000'000'000;

template <typename T, typename Append>
std::string ListBody(std::string_view name, const std::vector<T>& items, Append append) {
  return JsonObject([&](JsonWriter& json) {
    json.Key(name).BeginArray();
    for (const T& item : items) append(json, item);
    json.EndArray();
  });
}

std::string WindowsBody(const Config& config, const std::vector<WindowLoad>& windows) {
  return JsonObject([&](JsonWriter& json) {
    AppendConfig(json.Key("config"), config);
    json.Key("windows").BeginArray();
    for (const WindowLoad& window : windows) AppendWindow(json, window);
    json.EndArray();
  });
}

}  // namespace

struct SlotsApi::Parts {
  explicit Parts(SlotStore& given)
      : store(given),
        combiner(given),
        cache(SystemClock::Get()),
        watch(given),
        execution(given, watch, bodies) {}

  void Assign(const Request& request, Reply reply);
  void AssignBatch(const Request& request, Reply reply);
  void AssignParsed(Result<std::vector<ParsedAsk>> parsed, const Reply& reply);
  void Cancel(const Request& request, Reply reply);
  void Reschedule(const Request& request, Reply reply);
  void Restore(const Request& request, Reply reply);
  void Move(Result<MoveRequest> move, bool restore, Reply reply);

  void CreateConfig(const Request& request, Reply reply);
  void ListConfigs(const Request& request, Reply reply);
  void FlushCache(const Request& request, Reply reply);
  void GetConfig(const Request& request, Reply reply);
  void ListVersions(const Request& request, Reply reply);
  void Deactivate(const Request& request, Reply reply);
  void ListWindows(const Request& request, Reply reply);
  void Forecast(const Request& request, Reply reply);
  void Verify(const Request& request, Reply reply);

  // Passes the active config, from the cache or the store, to `then`; answers 404 itself.
  void WithConfig(const std::string& name, Reply reply,
                  std::function<void(const Config&, const Reply&)> then);
  void ForecastPage(const std::shared_ptr<slots::Forecast>& forecast, const Config& config,
                    std::function<void()> done, const Reply& reply);

  SlotStore& store;
  Combiner combiner;
  ConfigCache cache;
  SlotsWatch watch;
  ExecutionApi execution;
  LargeBodies bodies;  // last, since it uses all of the above
};

void SlotsApi::Parts::Assign(const Request& request, Reply reply) {
  Result<Ask> ask = ParseAsk(request.body);
  if (!ask.ok()) return reply(ErrorResponse(ask.error()));
  ask->random = Random();
  Ask asked{.config = ask->config, .requested = ask->requested, .tenant = ask->tenant};
  std::vector<Ask> asks;
  asks.push_back(std::move(*ask));
  combiner.Assign(std::move(asks), [this, reply = std::move(reply),
                                    asked = std::move(asked)](Result<std::vector<Answer>> answers) {
    if (!answers.ok()) return reply(ErrorResponse(answers.error()));
    watch.Count(answers->front().outcome);
    reply(AnswerResponse(answers->front(), asked));
  });
}

void SlotsApi::Parts::AssignBatch(const Request& request, Reply reply) {
  bodies.Read(request.body, std::move(reply), [this](std::string_view body, const Reply& answer) {
    AssignParsed(ParseBatch(body), answer);
  });
}

void SlotsApi::Parts::AssignParsed(Result<std::vector<ParsedAsk>> parsed, const Reply& reply) {
  if (!parsed.ok()) return reply(ErrorResponse(parsed.error()));
  auto batch = std::make_shared<BatchRequest>();
  batch->parsed = std::move(*parsed);
  std::vector<Ask> asks;
  asks.reserve(batch->parsed.size());
  for (ParsedAsk& one : batch->parsed) {
    if (!one.status.ok()) continue;
    one.ask.random = Random();
    asks.push_back(one.ask);
  }
  if (asks.empty()) return reply(Response::Json(batch->Body()));
  combiner.Assign(std::move(asks), [this, batch, reply](Result<std::vector<Answer>> answers) {
    if (!answers.ok()) return reply(ErrorResponse(answers.error()));
    for (const Answer& answer : *answers) watch.Count(answer.outcome);
    batch->answers = std::move(*answers);
    reply(Response::Json(batch->Body()));
  });
}

void SlotsApi::Parts::Cancel(const Request& request, Reply reply) {
  std::string event = request.params.at(0);
  store.Cancel(event, [event, reply = std::move(reply)](Result<std::optional<Slot>> slot) {
    if (!slot.ok()) return reply(EventError(slot.error(), event));
    if (!slot->has_value()) return reply(UnknownEvent(event));
    reply(
        Response::Json(JsonText([&](JsonWriter& json) { AppendSlot(json, **slot, "CANCELLED"); })));
  });
}

void SlotsApi::Parts::Reschedule(const Request& request, Reply reply) {
  Move(ParseReschedule(request.body, request.params.at(0)), false, std::move(reply));
}

void SlotsApi::Parts::Restore(const Request& request, Reply reply) {
  const bool plain = request.body.empty();
  Move(plain ? Result<MoveRequest>(MoveRequest{.event_id = request.params.at(0)})
             : ParseReschedule(request.body, request.params.at(0)),
       true, std::move(reply));
}

void SlotsApi::Parts::Move(Result<MoveRequest> move, bool restore, Reply reply) {
  if (!move.ok()) return reply(ErrorResponse(move.error()));
  move->random = Random();
  auto told = [kept = Ask{.event_id = move->event_id, .config = move->config},
               reply = std::move(reply)](Result<std::optional<Answer>> answer) {
    if (!answer.ok()) return reply(EventError(answer.error(), kept.event_id));
    if (!answer->has_value()) return reply(UnknownEvent(kept.event_id));
    reply(AnswerResponse(**answer, kept));
  };
  if (restore) return store.Restore(std::move(*move), std::move(told));
  store.Reschedule(std::move(*move), std::move(told));
}

void SlotsApi::Parts::CreateConfig(const Request& request, Reply reply) {
  Result<Config> config = ParseConfig(request.body);
  if (!config.ok()) return reply(ErrorResponse(config.error()));
  store.PutConfig(std::move(*config), [this, reply = std::move(reply)](Result<Config> made) {
    if (!made.ok()) return reply(ErrorResponse(made.error()));
    cache.Put(*made);
    reply(Response::Json(ConfigBody(*made), 201));
  });
}

void SlotsApi::Parts::ListConfigs(const Request&, Reply reply) {
  store.ListConfigs([reply = std::move(reply)](Result<std::vector<Config>> configs) {
    if (!configs.ok()) return reply(ErrorResponse(configs.error()));
    reply(Response::Json(ListBody("configs", *configs, AppendConfig)));
  });
}

void SlotsApi::Parts::WithConfig(const std::string& name, Reply reply,
                                 std::function<void(const Config&, const Reply&)> then) {
  if (std::optional<Config> cached = cache.Get(name)) return then(*cached, reply);
  store.GetConfig(name, [this, name, reply = std::move(reply),
                         then = std::move(then)](Result<std::optional<Config>> config) {
    if (!config.ok()) return reply(ErrorResponse(config.error()));
    if (!config->has_value()) return reply(UnknownConfig(name));
    cache.Put(**config);
    then(**config, reply);
  });
}

void SlotsApi::Parts::GetConfig(const Request& request, Reply reply) {
  WithConfig(request.params.at(0), std::move(reply), [](const Config& config, const Reply& answer) {
    answer(Response::Json(ConfigBody(config)));
  });
}

void SlotsApi::Parts::ListVersions(const Request& request, Reply reply) {
  std::string name = request.params.at(0);
  store.ListVersions(name, [name, reply = std::move(reply)](Result<std::vector<Config>> configs) {
    if (!configs.ok()) return reply(ErrorResponse(configs.error()));
    if (configs->empty()) return reply(UnknownConfig(name));
    reply(Response::Json(ListBody("versions", *configs, AppendConfig)));
  });
}

void SlotsApi::Parts::Deactivate(const Request& request, Reply reply) {
  std::string name = request.params.at(0);
  store.Deactivate(name, [this, name, reply = std::move(reply)](Result<bool> done) {
    cache.Forget(name);
    if (!done.ok()) return reply(ErrorResponse(done.error()));
    if (!*done) return reply(UnknownConfig(name));
    reply(Response::Json(JsonObject(
        [&](JsonWriter& json) { json.Field("configName", name).Field("active", false); })));
  });
}

void SlotsApi::Parts::ListWindows(const Request& request, Reply reply) {
  const auto query = http::Query::ReadKnown(request.query, {"config", "from", "limit"});
  if (!query.ok()) return reply(ErrorResponse(query.error()));
  const std::optional<std::string> name = query->Find("config");
  if (!name) return reply(Refuse("config is missing"));
  Millis from = 0;
  if (query->Find("from")) {
    Result<Millis> instant = QueryInstant(*query, "from");
    if (!instant.ok()) return reply(ErrorResponse(instant.error()));
    from = *instant;
  }
  Result<std::int64_t> limit =
      query->Number("limit", 1, kWindowPage, static_cast<std::int64_t>(kWindowPage));
  if (!limit.ok()) return reply(ErrorResponse(limit.error()));
  WithConfig(*name, std::move(reply),
             [this, from, count = static_cast<std::size_t>(*limit)](const Config& config,
                                                                    const Reply& answer) {
               store.ListWindows(config.name, from, count,
                                 [config, answer](Result<std::vector<WindowLoad>> windows) {
                                   if (!windows.ok()) return answer(ErrorResponse(windows.error()));
                                   answer(Response::Json(WindowsBody(config, *windows)));
                                 });
             });
}

void SlotsApi::Parts::Forecast(const Request& request, Reply reply) {
  const auto query = http::Query::ReadKnown(request.query, {"config", "requestedTime", "count"});
  if (!query.ok()) return reply(ErrorResponse(query.error()));
  const std::optional<std::string> name = query->Find("config");
  if (!name) return reply(Refuse("config is missing"));
  Result<Millis> requested = QueryInstant(*query, "requestedTime");
  if (!requested.ok()) return reply(ErrorResponse(requested.error()));
  Result<std::int64_t> count = query->Number("count", 1, kMaxForecast, 1);
  if (!count.ok()) return reply(ErrorResponse(count.error()));
  WithConfig(*name, std::move(reply),
             [this, at = *requested, n = *count](const Config& config, const Reply& answer) {
               auto forecast = std::make_shared<slots::Forecast>(config, at, n);
               ForecastPage(
                   forecast, config,
                   [=] { answer(Response::Json(ForecastBody(*forecast, config, at, n))); }, answer);
             });
}

void SlotsApi::Parts::ForecastPage(const std::shared_ptr<slots::Forecast>& forecast,
                                   const Config& config, std::function<void()> done,
                                   const Reply& reply) {
  store.ListWindows(config.name, forecast->next(), kWindowPage,
                    [this, forecast, config, done = std::move(done),
                     reply](Result<std::vector<WindowLoad>> windows) {
                      if (!windows.ok()) return reply(ErrorResponse(windows.error()));
                      forecast->Add(*windows);
                      if (!forecast->done() && windows->size() == kWindowPage) {
                        return ForecastPage(forecast, config, done, reply);
                      }
                      forecast->Finish();
                      done();
                    });
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): handlers share one signature.
void SlotsApi::Parts::FlushCache(const Request&, Reply reply) {
  reply(Response::Json(
      JsonObject([this](JsonWriter& json) { json.Field("flushed", cache.Flush()); })));
}

void SlotsApi::Parts::Verify(const Request&, Reply reply) {
  store.Verify([reply = std::move(reply)](Result<Findings> findings) {
    if (!findings.ok()) return reply(ErrorResponse(findings.error()));
    reply(Response::Json(FindingsBody(*findings)));
  });
}

SlotsApi::SlotsApi(SlotStore& store) : parts_(std::make_unique<Parts>(store)) {}
SlotsApi::~SlotsApi() = default;

void SlotsApi::Close() {
  parts_->bodies.Close();
  parts_->watch.Close();
}

SlotsWatch& SlotsApi::watch() noexcept { return parts_->watch; }

admin::Undoable SlotsApi::configs() {
  return SlotConfigs(parts_->store, [parts = parts_.get()](const std::string& name) {
    parts->cache.Forget(name);
  });
}

void SlotsApi::AddTo(http::Router& router, const Protect& admin, const Protect& change,
                     const Audit& audited, const Claimed& claimed) {
  Parts* const parts = parts_.get();
  const auto bind = [parts](auto method) { return http::Bind(parts, method); };
  router.Add("POST", "/api/v1/slots", bind(&Parts::Assign));
  router.AddLarge("POST", "/api/v1/slots/batch", bind(&Parts::AssignBatch));
  router.Add("DELETE", "/api/v1/slots/{eventId}", audited("slot.cancel", bind(&Parts::Cancel)));
  router.Add("POST", "/api/v1/slots/{eventId}/reschedule",
             audited("slot.reschedule", bind(&Parts::Reschedule)));
  router.Add("POST", "/api/v1/slots/{eventId}/restore",
             audited("slot.restore", bind(&Parts::Restore)));
  parts->execution.AddTo(router, admin, claimed);

  const auto add = [&](const Protect& protect, std::string_view method, const std::string& path,
                       auto handler) {
    router.Add(method, "/admin/rate-limit" + path, protect(bind(handler)));
  };
  add(change, "POST", "/config", &Parts::CreateConfig);
  add(admin, "GET", "/config", &Parts::ListConfigs);
  add(admin, "GET", "/config/{configName}", &Parts::GetConfig);
  add(change, "DELETE", "/config/{configName}", &Parts::Deactivate);
  add(change, "POST", "/config/{configName}/deactivate", &Parts::Deactivate);
  add(admin, "GET", "/config/{configName}/versions", &Parts::ListVersions);
  add(admin, "POST", "/cache/flush", &Parts::FlushCache);
  add(admin, "GET", "/windows", &Parts::ListWindows);
  add(admin, "GET", "/forecast", &Parts::Forecast);
  add(admin, "GET", "/verify", &Parts::Verify);
}

}  // namespace weir::slots
