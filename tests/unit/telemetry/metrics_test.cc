#include "telemetry/metrics.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <ctime>
#include <string>
#include <thread>
#include <vector>

namespace weir::telemetry {
namespace {

TEST(TextWriter, WritesTheFormatThatPrometheusReads) {
  std::string out;
  TextWriter writer(out);
  writer.Counter("a_total", "Things \\ that\nhappened.");
  const std::array<Label, 2> labels = {{{"policy", "x\"y\\z\n"}, {"door", "http"}}};
  writer.Sample(std::uint64_t{3}, labels);
  writer.Gauge("b", "Half.");
  writer.Sample(0.5);
  EXPECT_EQ(out,
            "# HELP a_total Things \\\\ that\\nhappened.\n"
            "# TYPE a_total counter\n"
            "a_total{policy=\"x\\\"y\\\\z\\n\",door=\"http\"} 3\n"
            "# HELP b Half.\n"
            "# TYPE b gauge\n"
            "b 0.5\n");
}

TEST(TextWriter, AddsHistogramsUpAndCumulates) {
  LocalHistogram one;
  LocalHistogram two;
  one.Observe(10'000);         // the bound belongs to the bucket
  two.Observe(10'001, 2);      // next bucket, twice
  two.Observe(2'000'000'000);  // beyond all bounds
  std::string out;
  TextWriter writer(out);
  writer.Histogram("h", "H.");
  const std::array<const LocalHistogram*, 2> parts = {&one, &two};
  writer.Samples(parts);
  EXPECT_NE(out.find("h_bucket{le=\"1e-05\"} 1\n"), std::string::npos) << out;
  EXPECT_NE(out.find("h_bucket{le=\"2.5e-05\"} 3\n"), std::string::npos) << out;
  EXPECT_NE(out.find("h_bucket{le=\"1\"} 3\n"), std::string::npos) << out;
  EXPECT_NE(out.find("h_bucket{le=\"+Inf\"} 4\n"), std::string::npos) << out;
  EXPECT_NE(out.find("h_count 4\n"), std::string::npos) << out;
  // 10000 + 2 * 10001 + 2000000000 ns = 2.000030002 s
  EXPECT_NE(out.find("h_sum 2.000030002\n"), std::string::npos) << out;
}

TEST(LocalCounter, IsReadWhileItIsWritten) {
  LocalCounter counter;
  std::thread writer([&] {
    for (int i = 0; i < 100'000; ++i) counter.Add();
  });
  std::uint64_t last = 0;
  while (last < 100'000) {
    const std::uint64_t now = counter.value();
    ASSERT_GE(now, last);
    last = now;
  }
  writer.join();
}

TEST(Registry, RendersCollectorsInOrder) {
  Registry registry;
  registry.Add([](TextWriter& out) {
    out.Gauge("a", "A.");
    out.Sample(std::uint64_t{1});
  });
  registry.Add(CollectProcess);
  const std::string text = registry.Render();
  EXPECT_EQ(text.find("# HELP a A."), 0u);
  EXPECT_NE(text.find("weir_build_info{version=\""), std::string::npos);
  EXPECT_EQ(text.find("process_resident_memory_bytes 0\n"), std::string::npos);
}

double SampleOf(const std::string& text, const std::string& name) {
  const std::size_t at = text.find("\n" + name + " ");
  return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size() + 2));
}

TEST(CollectProcess, StartedAMomentAgoAndAlwaysAtTheSameTime) {
  std::string first;
  std::string second;
  TextWriter writer(first);
  CollectProcess(writer);
  TextWriter again(second);
  CollectProcess(again);
  const double start = SampleOf(first, "process_start_time_seconds");
  const auto now = static_cast<double>(std::time(nullptr));
  EXPECT_GT(start, now - 600);
  EXPECT_LT(start, now + 2);
  EXPECT_EQ(start, SampleOf(second, "process_start_time_seconds"));
}

/// The CPU time of this many collections, in milliseconds.
double TimeOfCollecting(int times) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
  };
  const double before = now();
  for (int i = 0; i < times; ++i) {
    std::string text;
    TextWriter writer(text);
    CollectProcess(writer);
    EXPECT_GT(SampleOf(text, "process_open_fds"), 2);
  }
  return now() - before;
}

// Anyone may request metrics, and a reactor answers: its time must not grow with the number of
// connections.
TEST(CollectProcess, TakesNoLongerWithThousandsOfOpenFiles) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit raised{limit.rlim_max, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &raised), 0);
  const double few = TimeOfCollecting(50);
  std::vector<int> files;
  for (int i = 0; i < 4'000; ++i) {
    const int file = dup(STDERR_FILENO);
    if (file >= 0) files.push_back(file);
  }
  ASSERT_GT(files.size(), 900U);
  EXPECT_LT(TimeOfCollecting(50), 3 * few + 20);
  for (const int file : files) close(file);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

}  // namespace
}  // namespace weir::telemetry
