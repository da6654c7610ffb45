#include <dirent.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <mutex>
#include <sstream>
#include <string>

#include "telemetry/metrics.h"
#include "telemetry/version.h"

namespace weir::telemetry {
namespace {

/// The fields of /proc/self/stat from the third on: those before may contain spaces.
std::istringstream OpenStat() {
  std::ifstream file("/proc/self/stat");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const std::size_t end = text.rfind(')');
  return std::istringstream(end == std::string::npos ? std::string() : text.substr(end + 1));
}

/// Seconds of a clock.
double Seconds(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

constexpr const char* kOpenFiles = "/proc/self/fd";

std::uint64_t CountOpenFiles() {
  DIR* directory = opendir(kOpenFiles);
  if (directory == nullptr) return 0;
  std::uint64_t count = 0;
  while (readdir(directory) != nullptr) ++count;  // NOLINT(concurrency-mt-unsafe): own stream
  closedir(directory);
  return count < 3 ? 0 : count - 3;  // ".", ".." and the directory itself
}

/// Since Linux 6.2, the directory's size is their number. Before, they have to be counted, which
/// takes a reactor many milliseconds with thousands of connections: so only now and then.
std::uint64_t OpenFiles() {
  struct stat directory {};
  if (stat(kOpenFiles, &directory) == 0 && directory.st_size > 0) {
    return static_cast<std::uint64_t>(directory.st_size);
  }
  constexpr double kEvery = 10;
  static std::mutex mutex;
  static std::uint64_t counted = 0;
  static double counted_at = -kEvery;
  const std::lock_guard lock(mutex);
  const double now = Seconds(CLOCK_MONOTONIC);
  if (now - counted_at >= kEvery) {
    counted = CountOpenFiles();
    counted_at = now;
  }
  return counted;
}

/// Read once, so that it does not vary; not from /proc/stat, which a hardened service cannot see.
double BootTime() {
  static const double boot = Seconds(CLOCK_REALTIME) - Seconds(CLOCK_BOOTTIME);
  return boot;
}

}  // namespace

void CollectProcess(TextWriter& out) {
  std::istringstream stat = OpenStat();
  std::string skipped;
  std::uint64_t user = 0;
  std::uint64_t system = 0;
  std::uint64_t threads = 0;
  std::uint64_t start = 0;
  std::uint64_t virtual_bytes = 0;
  std::uint64_t resident_pages = 0;
  for (int field = 3; field < 14; ++field) stat >> skipped;
  stat >> user >> system;
  for (int field = 16; field < 20; ++field) stat >> skipped;
  stat >> threads >> skipped >> start >> virtual_bytes >> resident_pages;
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));

  out.Gauge("weir_build_info", "The version as a label; always 1.");
  const std::array<Label, 1> version = {{{"version", kVersion}}};
  out.Sample(std::uint64_t{1}, version);
  out.Counter("process_cpu_seconds_total", "User and system CPU time spent in seconds.");
  out.Sample(static_cast<double>(user + system) / ticks);
  out.Gauge("process_resident_memory_bytes", "Resident memory size in bytes.");
  out.Sample(resident_pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)));
  out.Gauge("process_virtual_memory_bytes", "Virtual memory size in bytes.");
  out.Sample(virtual_bytes);
  out.Gauge("process_start_time_seconds", "Start time of the process since the Unix epoch.");
  out.Sample(BootTime() + static_cast<double>(start) / ticks);
  out.Gauge("process_open_fds", "Number of open file descriptors.");
  out.Sample(OpenFiles());
  out.Gauge("process_threads", "Number of threads.");
  out.Sample(threads);
}

}  // namespace weir::telemetry
