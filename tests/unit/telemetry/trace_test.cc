#include "telemetry/trace.h"

#include <gtest/gtest.h>

namespace weir::telemetry {
namespace {

// The example of the W3C recommendation.
constexpr std::string_view kExample = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST(TraceParent, ReadsAndWritesTheExample) {
  const auto context = ParseTraceParent(kExample);
  ASSERT_TRUE(context);
  EXPECT_EQ(context->trace(), "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(context->span(), "00f067aa0ba902b7");
  EXPECT_TRUE(context->sampled);
  EXPECT_EQ(context->ToHeader(), kExample);
}

TEST(TraceParent, AChildKeepsTheTraceAndChangesTheSpan) {
  const auto context = ParseTraceParent(kExample);
  const TraceContext child = context->Child();
  EXPECT_EQ(child.trace(), context->trace());
  EXPECT_NE(child.span(), context->span());
  EXPECT_TRUE(ParseTraceParent(child.ToHeader()));
}

TEST(TraceParent, IgnoresWhatIsMalformed) {
  for (const char* text : {
           "",
           "00",
           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-extra",
           "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
           "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
           "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
           "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
           "00-4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7-01",
       }) {
    EXPECT_FALSE(ParseTraceParent(text)) << text;
  }
  // A future version may append more after a dash.
  EXPECT_TRUE(ParseTraceParent("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00-x"));
}

}  // namespace
}  // namespace weir::telemetry
