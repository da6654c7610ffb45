#include "limiter/observer.h"

#include <array>
#include <chrono>
#include <utility>

#include "limiter/request_span.h"
#include "telemetry/trace.h"
#include "telemetry/tracer.h"

namespace weir::limiter {
namespace {

using telemetry::Span;

std::int64_t CeilMillis(std::chrono::nanoseconds time) noexcept {
  return (time.count() + 999'999) / 1'000'000;
}

/// The request's id, or a generated one.
class RequestId {
 public:
  explicit RequestId(std::string_view given) : given_(given) {
    if (given.empty()) made_ = telemetry::RandomId();
  }
  std::string_view text() const noexcept {
    return given_.empty() ? std::string_view(made_.data(), made_.size()) : given_;
  }

 private:
  std::string_view given_;
  std::array<char, 16> made_{};
};

}  // namespace

std::string KeyText(const policy::Request& request) {
  std::string key(request.key);
  const auto add = [&key](const policy::Entry& entry) {
    if (entry.key == "api_key") return;
    key.append(key.empty() ? "" : "|").append(entry.key).append(":").append(entry.value);
  };
  for (const policy::Descriptor& descriptor : request.descriptors) {
    for (const policy::Entry& entry : descriptor) add(entry);
  }
  return key;
}

bool Observer::MayLog() {
  if (!telemetry::LogEnabled(telemetry::Level::kInfo)) return false;
  if (throttle_.Allow(SystemClock::Get().Now() / 1'000'000'000)) return true;
  ++suppressed_;
  return false;
}

void Observer::LogRefusal(const Check& check) {
  if (!MayLog()) return;
  const std::string key = Shown(KeyText(check.request));
  const RequestId id(check.origin.request_id);
  const telemetry::TraceHeader header = telemetry::ToHeader(check.origin.trace);
  const std::string_view trace(header.data(), check.origin.trace.span != 0 ? header.size() : 0);
  // 00-<32 trace digits>-<16 span digits>-<2>.
  const std::string_view trace_id = trace.empty() ? trace : trace.substr(3, 32);
  const std::string_view span_id = trace.empty() ? trace : trace.substr(36, 16);
  const std::int64_t suppressed = std::exchange(suppressed_, 0);
  if (!check.status.ok()) {
    telemetry::Log(telemetry::Level::kWarn, "check failed",
                   {{"request_id", id.text()},
                    {"door", check.origin.door},
                    {"key", std::string_view(key)},
                    {"error", std::string_view(check.status.error().message)},
                    {"suppressed", suppressed},
                    {"trace_id", trace_id},
                    {"span_id", span_id}});
    return;
  }
  telemetry::Log(telemetry::Level::kInfo, "limited",
                 {{"request_id", id.text()},
                  {"door", check.origin.door},
                  {"key", std::string_view(key)},
                  {"policy", check.policy},
                  {"retry_after_ms", CeilMillis(check.decision.retry_after)},
                  {"suppressed", suppressed},
                  {"trace_id", trace_id},
                  {"span_id", span_id}});
}

void Observer::Refused(std::string_view door, std::string_view key, const Decision& decision) {
  if (!MayLog()) return;
  const std::string shown = Shown(std::string(key));
  const RequestId id({});
  telemetry::Log(telemetry::Level::kInfo, "limited",
                 {{"request_id", id.text()},
                  {"door", door},
                  {"key", std::string_view(shown)},
                  {"retry_after_ms", CeilMillis(decision.retry_after)},
                  {"suppressed", std::exchange(suppressed_, 0)}});
}

void Observer::RecordParts(const telemetry::SpanContext& request, std::string_view key,
                           std::string_view policy, const Decision& decision, bool failed,
                           const DecisionTimes& times) {
  Span decided;
  decided.context = telemetry::Tracer::Child(request);
  decided.name = "weir.decide";
  decided.start = times.asked;
  decided.end = times.answered;
  decided.failed = failed;
  decided.Add("weir.key", key);
  decided.Add("weir.policy", policy);
  if (!failed) {
    decided.Add("weir.outcome", OutcomeOf(decision));
    decided.Add("weir.limit", decision.limit);
    decided.Add("weir.remaining", decision.remaining);
  }
  options_.tracer->Record(decided);
  if (times.store == 0) return;
  Span store;
  store.context = telemetry::Tracer::Child(decided.context);
  store.name = "weir.store";
  store.kind = Span::Kind::kClient;
  store.start = times.store;
  store.end = times.answered;
  store.failed = failed;
  store.Add("db.system", options_.store);
  options_.tracer->Record(store);
}

void Observer::Trace(const Check& check, const DecisionTimes& times) {
  if (!check.origin.trace.sampled) return;
  const std::string key = Shown(KeyText(check.request));
  RecordParts(check.origin.trace, key, check.policy, check.decision, !check.status.ok(), times);
}

void Observer::TraceCharge(std::string_view name, std::string_view key, const Decision& decision,
                           const DecisionTimes& times) {
  Span request;
  request.context = options_.tracer->Begin({}, times.asked);
  if (!request.context.sampled) return;
  request.name = name;
  request.kind = Span::Kind::kServer;
  request.start = times.asked;
  request.end = times.answered;
  request.Add("weir.door", "resp");
  request.Add("weir.outcome", OutcomeOf(decision));
  options_.tracer->Record(request);
  RecordParts(request.context, Shown(std::string(key)), {}, decision, false, times);
}

}  // namespace weir::limiter
