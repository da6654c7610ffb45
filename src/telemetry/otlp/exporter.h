#pragma once

// Sends recorded spans to an OpenTelemetry receiver (a collector) with OTLP: HTTP with protobuf, or
// gRPC, which is one unary call and needs no gRPC library. All of it runs on a thread of its own.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "telemetry/otlp/encode.h"
#include "telemetry/tracer.h"
#include "weir/result.h"

namespace weir::telemetry {
class TextWriter;
}

namespace weir::telemetry::otlp {

/// The parts of the endpoint's URL.
struct Endpoint {
  std::string url;  ///< for libcurl, with the path
  bool grpc = false;
  bool tls = false;

  /// Accepts http://, https://, grpc:// and grpcs://. The default path for HTTP is /v1/traces.
  static Result<Endpoint> Parse(const std::string& text);
};

struct ExporterOptions {
  Endpoint endpoint;
  std::vector<std::string> headers;  ///< "name: value"; secret
  Origin origin;
  std::size_t batch = 512;
  std::chrono::milliseconds interval{1'000};  ///< the longest that a span waits for a batch to fill
  std::chrono::milliseconds timeout{10'000};  ///< of a request
  std::chrono::milliseconds backoff{500};     ///< before the second attempt; doubled each time
  int attempts = 4;
};

/// Thread safety: any thread may read its counters; call Stop and the destructor from one.
class Exporter {
 public:
  /// `tracer` must outlive this.
  Exporter(Tracer& tracer, ExporterOptions options);
  ~Exporter();
  Exporter(const Exporter&) = delete;
  Exporter& operator=(const Exporter&) = delete;

  /// Tries once to send what waits, and ends the thread. All of it, with a request in progress, has
  /// a second; a receiver that does not answer may take one more. Idempotent.
  void Stop();

  std::uint64_t exported() const noexcept { return exported_.load(std::memory_order_relaxed); }
  /// Dropped: the receiver was down for too long, or refused them.
  std::uint64_t failed() const noexcept { return failed_.load(std::memory_order_relaxed); }

  /// weir_trace_spans_*.
  void Collect(TextWriter& out) const;

 private:
  using Moment = std::chrono::steady_clock::time_point;
  static constexpr Moment kNever = Moment::max();

  struct Sender;

  void Run();
  void Send(const std::vector<Span>& spans);
  bool Pause(std::chrono::milliseconds time);
  bool stopping() const noexcept { return give_up_at_.load() != kNever; }

  Tracer& tracer_;
  const ExporterOptions options_;
  const std::unique_ptr<Sender> sender_;
  std::atomic<std::uint64_t> exported_{0};
  std::atomic<std::uint64_t> failed_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<Moment> give_up_at_{kNever};  // set by Stop
  bool away_ = false;                       // the receiver is down; logged once
  std::thread thread_;
};

}  // namespace weir::telemetry::otlp
