#include "limiter/observer.h"

#include <array>
#include <chrono>
#include <utility>

#include "limiter/request_span.h"
#include "policy/policy_set.h"
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

/// The ids of a request's trace; empty if it has none.
class TraceIds {
 public:
  explicit TraceIds(const telemetry::SpanContext& context)
      : header_(telemetry::ToHeader(context)), traced_(context.span != 0) {}
  // 00-<32 trace digits>-<16 span digits>-<2>.
  std::string_view trace() const { return Part(3, 32); }
  std::string_view span() const { return Part(36, 16); }

 private:
  std::string_view Part(std::size_t at, std::size_t size) const {
    return traced_ ? std::string_view(header_.data(), header_.size()).substr(at, size)
                   : std::string_view();
  }

  telemetry::TraceHeader header_;
  bool traced_;
};

/// The domain of the policy; empty if the quota came with the request.
std::string_view DomainOf(const PolicyVerdict& verdict) {
  return verdict.rule == nullptr ? std::string_view()
                                 : std::string_view(verdict.rule->definition.domain);
}

/// The domain of the policy that refused it; if none did, the one that was asked for.
std::string_view DomainOf(const Check& check) {
  for (const PolicyVerdict& verdict : check.verdicts) {
    if (!verdict.shadow && verdict.policy == check.policy && !verdict.decision.allowed()) {
      return DomainOf(verdict);
    }
  }
  return check.request.domain;
}

}  // namespace

std::string KeyText(const policy::Request& request, const ObserverOptions& options) {
  std::string key(request.key);
  const auto add = [&](const policy::Entry& entry) {
    const bool secret = entry.key == "api_key";
    if (secret && !options.secret_text) return;
    key.append(key.empty() ? "" : "|").append(entry.key).append(":");
    key.append(secret ? options.secret_text(entry.value) : entry.value);
  };
  for (const policy::Descriptor& descriptor : request.descriptors) {
    for (const policy::Entry& entry : descriptor) add(entry);
  }
  return key;
}

bool Observer::MayLog(Lines& lines) {
  if (!telemetry::LogEnabled(telemetry::Level::kInfo)) return false;
  if (lines.throttle.Allow(SystemClock::Get().Now() / 1'000'000'000)) return true;
  ++lines.suppressed;
  return false;
}

void Observer::LogRefusal(const Check& check) {
  if (!MayLog(refused_)) return;
  const std::string key = Shown(KeyText(check.request, options_));
  const RequestId id(check.origin.request_id);
  const TraceIds trace(check.origin.trace);
  const std::int64_t suppressed = std::exchange(refused_.suppressed, 0);
  if (!check.status.ok()) {
    telemetry::Log(telemetry::Level::kWarn, "check failed",
                   {{"request_id", id.text()},
                    {"door", check.origin.door},
                    {"key", std::string_view(key)},
                    {"error", std::string_view(check.status.error().message)},
                    {"suppressed", suppressed},
                    {"trace_id", trace.trace()},
                    {"span_id", trace.span()}});
    return;
  }
  telemetry::Log(telemetry::Level::kInfo, "limited",
                 {{"request_id", id.text()},
                  {"door", check.origin.door},
                  {"key", std::string_view(key)},
                  {"domain", DomainOf(check)},
                  {"policy", check.policy},
                  {"degraded", check.degraded_by},
                  {"retry_after_ms", CeilMillis(check.decision.retry_after)},
                  {"suppressed", suppressed},
                  {"trace_id", trace.trace()},
                  {"span_id", trace.span()}});
}

void Observer::LogShadow(const Check& check, const PolicyVerdict& verdict) {
  // Several descriptors of a request may have the same bucket, which is charged once.
  for (const PolicyVerdict* before = check.verdicts.data(); before != &verdict; ++before) {
    if (before->rule == verdict.rule && before->key == verdict.key) return;
  }
  if (!MayLog(shadow_)) return;
  const std::string key = Shown(KeyText(check.request, options_));
  const RequestId id(check.origin.request_id);
  const TraceIds trace(check.origin.trace);
  telemetry::Log(telemetry::Level::kInfo, "limited in shadow",
                 {{"request_id", id.text()},
                  {"door", check.origin.door},
                  {"key", std::string_view(key)},
                  {"domain", DomainOf(verdict)},
                  {"policy", verdict.policy},
                  {"retry_after_ms", CeilMillis(verdict.decision.retry_after)},
                  {"suppressed", std::exchange(shadow_.suppressed, 0)},
                  {"trace_id", trace.trace()},
                  {"span_id", trace.span()}});
}

void Observer::Refused(std::string_view door, std::string_view key, const Decision& decision) {
  if (!MayLog(refused_)) return;
  const std::string shown = Shown(std::string(key));
  const RequestId id({});
  telemetry::Log(telemetry::Level::kInfo, "limited",
                 {{"request_id", id.text()},
                  {"door", door},
                  {"key", std::string_view(shown)},
                  {"retry_after_ms", CeilMillis(decision.retry_after)},
                  {"suppressed", std::exchange(refused_.suppressed, 0)}});
}

void Observer::Rejected(const Rejection& rejection) {
  if (!MayLog(rejected_)) return;
  const std::string address =
      rejection.address.empty() ? std::string() : Shown(std::string(rejection.address));
  const RequestId id(rejection.request_id);
  telemetry::Log(telemetry::Level::kInfo, "refused",
                 {{"request_id", id.text()},
                  {"door", rejection.door},
                  {"reason", rejection.reason},
                  {"address", std::string_view(address)},
                  {"suppressed", std::exchange(rejected_.suppressed, 0)}});
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
  const std::string key = Shown(KeyText(check.request, options_));
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
