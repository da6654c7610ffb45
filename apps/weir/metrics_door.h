#pragma once

#include <iosfwd>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>

#include "telemetry/metrics.h"
#include "weir/result.h"

namespace weir::app {

/// Answers GET /metrics on a thread of its own, one scrape after the other: a sender or a
/// dispatcher has no other door, and needs none of a service's. A peer has two seconds and 4 KiB
/// for its request.
///
/// Thread safety: for the thread that created it.
class MetricsDoor {
 public:
  /// What is wrong with an address, before it is opened.
  static Status Check(const std::string& address);
  /// `address` is HOST:PORT, or a port of 127.0.0.1; port 0 takes a free one. Prints "listening
  /// metrics …" to `told`. `registry` must outlive this.
  static Result<std::unique_ptr<MetricsDoor>> Open(const std::string& address,
                                                   const telemetry::Registry& registry,
                                                   std::ostream& told);
  ~MetricsDoor();
  MetricsDoor(const MetricsDoor&) = delete;
  MetricsDoor& operator=(const MetricsDoor&) = delete;

 private:
  MetricsDoor(int socket, const telemetry::Registry& registry);
  void Serve(const std::stop_token& stop) const;
  void Answer(int peer) const;

  const int socket_;
  const telemetry::Registry& registry_;
  std::jthread thread_;
};

}  // namespace weir::app
