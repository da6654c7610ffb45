#include "telemetry/tracer.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "telemetry/trace.h"

namespace weir::telemetry {
namespace {

constexpr std::string_view kSampled = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
constexpr std::string_view kUnsampled = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

Span Numbered(std::uint64_t number) {
  Span span;
  span.context.span = number;
  span.context.sampled = true;
  return span;
}

TEST(Tracer, JoinsTheCallersTrace) {
  Tracer tracer({.ratio = 0});
  const SpanContext context = tracer.Begin(kSampled, 0);
  EXPECT_TRUE(context.sampled);
  EXPECT_EQ(context.trace_high, 0x4bf92f3577b34da6U);
  EXPECT_EQ(context.trace_low, 0xa3ce929d0e0e4736U);
  EXPECT_EQ(context.parent, 0x00f067aa0ba902b7U);
  EXPECT_NE(context.span, context.parent);
  const TraceHeader header = ToHeader(context);
  const auto read = ParseTraceParent({header.data(), header.size()});
  ASSERT_TRUE(read);
  EXPECT_EQ(read->trace(), "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_TRUE(read->sampled);
}

TEST(Tracer, DoesWhatTheCallerSaysOfSampling) {
  Tracer tracer({.ratio = 1});
  EXPECT_FALSE(tracer.Begin(kUnsampled, 0).sampled);
  EXPECT_TRUE(tracer.Begin("malformed", 0).sampled) << "as if there were none";
}

TEST(Tracer, TakesTheShareThatItIsTold) {
  Tracer all({.ratio = 1});
  Tracer none({.ratio = 0});
  Tracer half({.ratio = 0.5, .max_per_second = 1'000'000});
  int taken = 0;
  for (int i = 0; i < 10'000; ++i) {
    EXPECT_TRUE(all.Begin({}, Nanos{i} * 1'000'000'000).sampled);
    EXPECT_FALSE(none.Begin({}, 0).sampled);
    if (half.Begin({}, 0).sampled) ++taken;
  }
  // Ten standard deviations.
  EXPECT_GT(taken, 4500);
  EXPECT_LT(taken, 5500);
}

TEST(Tracer, NoCallerCanHaveMoreTracedThanTheMost) {
  Tracer tracer({.ratio = 0, .max_per_second = 3});
  const auto sampled_in = [&](Nanos now) {
    int sampled = 0;
    for (int i = 0; i < 100; ++i) sampled += tracer.Begin(kSampled, now).sampled ? 1 : 0;
    return sampled;
  };
  EXPECT_EQ(sampled_in(5'000'000'000), 3);
  EXPECT_EQ(sampled_in(6'000'000'000), 3);
}

TEST(Tracer, ATraceIsFoundInTheLogThoughNothingIsRecorded) {
  const SpanContext context = ArrivedWith(kSampled, nullptr, 0);
  EXPECT_FALSE(context.sampled);
  EXPECT_EQ(context.trace_low, 0xa3ce929d0e0e4736U);
  EXPECT_NE(context.span, 0U);
  EXPECT_EQ(ArrivedWith({}, nullptr, 0).span, 0U);
}

TEST(Tracer, DropsAndCountsWhatDoesNotFit) {
  Tracer tracer({.queue = 4});
  for (std::uint64_t i = 1; i <= 10; ++i) tracer.Record(Numbered(i));
  EXPECT_EQ(tracer.recorded(), 4U);
  EXPECT_EQ(tracer.dropped(), 6U);
  EXPECT_EQ(tracer.waiting(), 4U);
  std::vector<Span> spans;
  tracer.Take(spans, 3);
  ASSERT_EQ(spans.size(), 3U);
  EXPECT_EQ(spans[2].context.span, 3U);
  tracer.Record(Numbered(11));
  spans.clear();
  tracer.Take(spans, 100);
  ASSERT_EQ(spans.size(), 2U);
  EXPECT_EQ(spans[0].context.span, 4U);
  EXPECT_EQ(spans[1].context.span, 11U);
}

TEST(Tracer, EveryRecordedSpanIsTakenOnce) {
  constexpr std::uint64_t kThreads = 4;
  constexpr std::uint64_t kEach = 20'000;
  Tracer tracer({.queue = 64});
  std::vector<std::thread> writers;
  for (std::uint64_t t = 0; t < kThreads; ++t) {
    writers.emplace_back([&tracer, t] {
      for (std::uint64_t i = 1; i <= kEach; ++i) tracer.Record(Numbered(t * kEach + i));
    });
  }
  std::vector<Span> spans;
  std::set<std::uint64_t> seen;
  const auto drain = [&] {
    spans.clear();
    tracer.Take(spans, 16);
    for (const Span& span : spans) EXPECT_TRUE(seen.insert(span.context.span).second);
    return !spans.empty();
  };
  while (tracer.recorded() + tracer.dropped() < kThreads * kEach) {
    if (!drain()) std::this_thread::yield();
  }
  for (std::thread& writer : writers) writer.join();
  while (drain()) {
  }
  EXPECT_EQ(seen.size(), tracer.recorded());
  EXPECT_EQ(tracer.recorded() + tracer.dropped(), kThreads * kEach);
  EXPECT_GT(tracer.recorded(), 0U);
}

TEST(Span, HasRoomForSoMuchAndNoMore) {
  Span span;
  const std::string text(1000, 'x');
  for (int i = 0; i < 20; ++i) span.Add("weir.key", text);
  ASSERT_EQ(span.size(), 10U);
  std::size_t total = 0;
  for (std::size_t i = 0; i < span.size(); ++i) total += span.TextOf(span.attribute(i)).size();
  EXPECT_EQ(span.TextOf(span.attribute(0)).size(), 128U);
  EXPECT_EQ(total, 384U);
  span.Add("weir.number", 7);
  EXPECT_EQ(span.size(), 10U);
}

}  // namespace
}  // namespace weir::telemetry
