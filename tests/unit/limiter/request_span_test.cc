#include "limiter/request_span.h"

#include <gtest/gtest.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "telemetry/tracer.h"

namespace weir::limiter {
namespace {

using telemetry::Span;

class RequestSpan : public testing::Test {
 protected:
  static Span Sampled() {
    Span span;
    span.context = {.trace_high = 1, .trace_low = 2, .span = 3, .parent = 0, .sampled = true};
    return span;
  }
  std::vector<Span> Spans() {
    std::vector<Span> spans;
    tracer_.Take(spans, 100);
    return spans;
  }
  Span Recorded(std::span<const Check> checks) {
    Span span = Sampled();
    RecordRequest(&tracer_, span, checks);
    const std::vector<Span> spans = Spans();
    EXPECT_EQ(spans.size(), 1U);
    return spans.front();
  }
  static std::optional<std::string> TextOf(const Span& span, std::string_view name) {
    for (std::size_t i = 0; i < span.size(); ++i) {
      const Span::Attribute& attribute = span.attribute(i);
      if (attribute.name != name) continue;
      return attribute.text ? std::string(span.TextOf(attribute))
                            : std::to_string(attribute.number);
    }
    return std::nullopt;
  }

  telemetry::Tracer tracer_{{.ratio = 1.0}};
};

TEST_F(RequestSpan, TellsWhatCameOfItsChecks) {
  std::vector<Check> checks(2);
  const Span allowed = Recorded(checks);
  EXPECT_EQ(TextOf(allowed, "weir.outcome"), "allowed");
  EXPECT_EQ(TextOf(allowed, "weir.checks"), "2");
  EXPECT_EQ(allowed.kind, Span::Kind::kServer);
  checks[0].decision.verdict = Verdict::kLimited;
  EXPECT_EQ(TextOf(Recorded(checks), "weir.outcome"), "limited");
  checks[1].decision.verdict = Verdict::kNever;
  EXPECT_EQ(TextOf(Recorded(checks), "weir.outcome"), "never");
  checks[1].decision.verdict = Verdict::kInvalid;
  const Span invalid = Recorded(checks);
  EXPECT_EQ(TextOf(invalid, "weir.outcome"), "invalid");
  EXPECT_FALSE(invalid.failed);
  checks[0].status = Error{Code::kInternal, "damaged"};
  const Span failed = Recorded(checks);
  EXPECT_EQ(TextOf(failed, "weir.outcome"), "error");
  EXPECT_TRUE(failed.failed);
}

TEST_F(RequestSpan, OfARequestWithoutChecksHasNoOutcome) {
  EXPECT_EQ(TextOf(Recorded({}), "weir.outcome"), std::nullopt);
}

TEST_F(RequestSpan, IsRecordedOnlyIfItIsSampledAndThereIsATracer) {
  const Check check;
  Span span;
  RecordRequest(&tracer_, span, {&check, 1});
  EXPECT_TRUE(Spans().empty());
  span = Sampled();
  RecordRequest(nullptr, span, {&check, 1});
  EXPECT_TRUE(Spans().empty());
}

}  // namespace
}  // namespace weir::limiter
