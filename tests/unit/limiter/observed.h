#pragma once

// A limiter whose log lines and spans a test reads.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "limiter/observer.h"
#include "telemetry/tracer.h"
#include "unit/limiter/fixture.h"

namespace weir::limiter::test {

inline constexpr std::string_view kOne = R"(
policies:
  - {name: one, match: {user: "*"}, quota: {fixed_window: {limit: 1, window: 10s}}}
  - {name: free, match: {plan: "*"}, unlimited: true}
)";

/// A store that is down.
class AbsentStore final : public store::Store {
 public:
  void Apply(std::span<store::Application> batch, store::Done done) override {
    for (store::Application& application : batch) {
      application.status = Error{Code::kUnavailable, "the store is down"};
    }
    done();
  }
};

inline std::optional<std::string> TextOf(const telemetry::Span& span, std::string_view name) {
  for (std::size_t i = 0; i < span.size(); ++i) {
    const telemetry::Span::Attribute& attribute = span.attribute(i);
    if (attribute.name != name) continue;
    return attribute.text ? std::string(span.TextOf(attribute)) : std::to_string(attribute.number);
  }
  return std::nullopt;
}

class Observed : public testing::Test {
 protected:
  Observed() { EXPECT_EQ(pipe(pipe_.data()), 0); }
  ~Observed() override {
    telemetry::FlushLog();
    telemetry::ConfigureLog({});
    close(pipe_[0]);
    close(pipe_[1]);
  }

  void LogFrom(telemetry::Level level) {
    telemetry::ConfigureLog(
        {.level = level, .format = telemetry::LogFormat::kJson, .fd = pipe_[1]});
  }
  /// What was logged since the last call. A line added by this function keeps the pipe from being
  /// empty.
  std::string Logged() {
    telemetry::Log(telemetry::Level::kError, "end");
    telemetry::FlushLog();
    std::string text(65536, '\0');
    const ssize_t n = read(pipe_[0], text.data(), text.size());
    text.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
    return text;
  }
  std::vector<telemetry::Span> Spans() {
    std::vector<telemetry::Span> spans;
    tracer_.Take(spans, 100);
    return spans;
  }
  static telemetry::SpanContext Sampled() {
    return {
        .trace_high = 0x0123456789abcdef, .trace_low = 1, .span = 2, .parent = 0, .sampled = true};
  }

  std::array<int, 2> pipe_{};
  telemetry::Tracer tracer_{{.ratio = 1.0}};
  World world_{kOne};
};

/// A charge made by an endpoint itself, to a bucket of one.
struct OwnCharge {
  Quota quota = *Quota::FixedWindow(1, std::chrono::seconds(10));
  store::Charge charge{"k", 1, &quota};
  Decision decision;
  store::Application application;

  OwnCharge() {
    application.charges = {&charge, 1};
    application.decisions = {&decision, 1};
  }
  void On(Limiter& limiter) {
    bool told = false;
    limiter.Apply({&application, 1}, [&told] { told = true; });
    EXPECT_TRUE(told);
  }
};

}  // namespace weir::limiter::test
