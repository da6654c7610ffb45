#pragma once

// What decisions produce besides counters: log lines of refusals, trace spans, and what policies
// have left.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "limiter/batch.h"
#include "limiter/limiter.h"
#include "telemetry/log.h"
#include "weir/clock.h"

namespace weir::limiter {

struct ObserverOptions {
  telemetry::Tracer* tracer = nullptr;  ///< null: nothing is traced
  /// Log lines per limiter, and as many of shadow policies and of rejections; 0: none.
  std::uint32_t refusals_per_second = 10;
  /// How a key is written in logs and traces; empty: as it is. Thread-safe.
  std::function<std::string(std::string_view)> key_text = {};
  /// How an API key is written in them, so that it cannot be read; empty: it is left out.
  /// Thread-safe.
  std::function<std::string(std::string_view)> secret_text = {};
  std::string store = "memory";  ///< the kind of store, for spans
  bool remaining = false;        ///< track what each policy's last decision left
};

/// When the parts of a decision started, for its spans.
struct DecisionTimes {
  Nanos asked = 0;
  Nanos store = 0;  ///< 0: the store was not called
  Nanos answered = 0;
};

/// A check's key for display: the bare key, or its entries as `user:42|route:/v1/pay`. An API key
/// is a client's secret: it is written as `secret_text` says.
std::string KeyText(const policy::Request& request, const ObserverOptions& options);

/// Thread safety: one per limiter, on its thread.
class Observer {
 public:
  explicit Observer(const ObserverOptions& options)
      : options_(options),
        refused_{telemetry::LogThrottle(options.refusals_per_second)},
        shadow_{telemetry::LogThrottle(options.refusals_per_second)},
        rejected_{telemetry::LogThrottle(options.refusals_per_second)} {}

  bool traces() const noexcept { return options_.tracer != nullptr; }
  bool keeps_remaining() const noexcept { return options_.remaining; }
  telemetry::Tracer* tracer() const noexcept { return options_.tracer; }

  /// Logs it if it was refused, if a shadow policy would have refused it, or if it could not be
  /// decided.
  void Told(const Check& check) {
    const bool charge = check.op == store::Op::kCharge;
    if ((charge && !check.decision.allowed()) || !check.status.ok()) [[unlikely]]
      LogRefusal(check);
    if (!charge || !check.status.ok()) return;
    for (const PolicyVerdict& verdict : check.verdicts) {
      if (verdict.shadow && !verdict.decision.allowed()) [[unlikely]]
        LogShadow(check, verdict);
    }
  }
  /// The same for a charge that a protocol made itself.
  void Refused(std::string_view door, std::string_view key, const Decision& decision);

  /// Logs a request that was refused without a check.
  void Rejected(const Rejection& rejection);

  /// Records the decision and the call to the store for it.
  void Trace(const Check& check, const DecisionTimes& times);
  /// The same with a span for the request, for a charge that a protocol made itself.
  void TraceCharge(std::string_view name, std::string_view key, const Decision& decision,
                   const DecisionTimes& times);

 private:
  /// Lines of one kind: those of shadow policies and of rejections leave those of refused checks
  /// their share.
  struct Lines {
    telemetry::LogThrottle throttle;
    std::int64_t suppressed = 0;  // since the last line
  };
  static bool MayLog(Lines& lines);
  std::string Shown(const std::string& key) const {
    return options_.key_text ? options_.key_text(key) : key;
  }
  void LogRefusal(const Check& check);
  void LogShadow(const Check& check, const PolicyVerdict& verdict);
  void RecordParts(const telemetry::SpanContext& request, std::string_view key,
                   std::string_view policy, const Decision& decision, bool failed,
                   const DecisionTimes& times);

  const ObserverOptions& options_;
  Lines refused_;
  Lines shadow_;
  Lines rejected_;
};

}  // namespace weir::limiter
