#pragma once

#include <memory>

#include "config/config.h"
#include "limiter/observer.h"
#include "telemetry/otlp/exporter.h"
#include "telemetry/tracer.h"
#include "weir/result.h"

namespace weir::app {

/// The traces of a process: what is recorded, and the thread that exports it. Created if
/// traces.endpoint is set, before the first limiter, and kept until the last one is destroyed.
///
/// Thread safety: as its parts.
class Tracing {
 public:
  /// Null if the configuration has none.
  static Result<std::unique_ptr<Tracing>> Open(const config::Config& config);

  telemetry::Tracer& tracer() noexcept { return tracer_; }
  telemetry::otlp::Exporter& exporter() noexcept { return exporter_; }

 private:
  Tracing(const telemetry::TracerOptions& options, telemetry::otlp::ExporterOptions exporter)
      : tracer_(options), exporter_(tracer_, std::move(exporter)) {}

  telemetry::Tracer tracer_;
  telemetry::otlp::Exporter exporter_;
};

/// What a limiter reports about its decisions; `tracing` may be null.
limiter::ObserverOptions ObserverOptionsOf(const config::Config& config, Tracing* tracing);

}  // namespace weir::app
