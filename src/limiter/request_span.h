#pragma once

#include <span>
#include <string_view>

#include "limiter/limiter.h"
#include "telemetry/span.h"

namespace weir::limiter {

/// "allowed", "limited", "never" or "invalid".
std::string_view OutcomeOf(const Decision& decision) noexcept;

/// Records the span of a request with what came of its checks; nothing if it is not sampled.
/// `span` may have attributes already.
void RecordRequest(telemetry::Tracer* tracer, telemetry::Span& span,
                   std::span<const Check> checks) noexcept;

}  // namespace weir::limiter
