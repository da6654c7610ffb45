#pragma once

#include <span>
#include <string_view>

#include "limiter/limiter.h"
#include "telemetry/span.h"

namespace weir::limiter {

/// "allowed", "limited", "never" or "invalid".
std::string_view OutcomeOf(const Decision& decision) noexcept;

/// Records the span of a request with the results of its checks; nothing if it is not sampled.
/// `span` may already have attributes.
void RecordRequest(telemetry::Tracer* tracer, telemetry::Span& span,
                   std::span<const Check> checks) noexcept;

}  // namespace weir::limiter
