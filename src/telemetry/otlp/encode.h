#pragma once

#include <span>
#include <string>
#include <string_view>

#include "telemetry/span.h"

namespace weir::telemetry::otlp {

/// The exporting process.
struct Origin {
  std::string service = "weir";
  std::string version;
  std::string instance;  ///< distinguishes processes of one service
};

/// Encodes spans as an ExportTraceServiceRequest. Bytes that are not UTF-8 become `?`, since a
/// receiver would refuse the whole batch for one of them.
std::string Encode(const Origin& origin, std::span<const Span> spans);

/// How many spans a receiver reports as refused; 0 if its answer cannot be parsed.
std::int64_t RejectedSpans(std::string_view response);

}  // namespace weir::telemetry::otlp
