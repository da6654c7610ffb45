#include "limiter/request_span.h"

#include "telemetry/tracer.h"

namespace weir::limiter {

std::string_view OutcomeOf(const Decision& decision) noexcept {
  switch (decision.verdict) {
    case Verdict::kAllowed:
      return "allowed";
    case Verdict::kLimited:
      return "limited";
    case Verdict::kNever:
      return "never";
    case Verdict::kInvalid:
      break;
  }
  return "invalid";
}

void RecordRequest(telemetry::Tracer* tracer, telemetry::Span& span,
                   std::span<const Check> checks) noexcept {
  if (tracer == nullptr || !span.context.sampled) return;
  span.kind = telemetry::Span::Kind::kServer;
  std::string_view outcome = "allowed";
  for (const Check& check : checks) {
    if (!check.status.ok()) {
      outcome = "error";
      span.failed = true;
      break;
    }
    if (!check.decision.allowed()) outcome = OutcomeOf(check.decision);
  }
  if (!checks.empty()) {
    span.Add("weir.outcome", outcome);
    span.Add("weir.checks", static_cast<std::int64_t>(checks.size()));
  }
  tracer->Record(span);
}

}  // namespace weir::limiter
