// What a client address costs under a sliding log of 100 requests per 60 minutes, in resident
// memory, and what a check costs. The plain implementation of such a log, a queue of 32-bit times
// per 32-bit address, is estimated at 404 bytes a client whether it sent one request or a hundred.

#include "weir/filter.h"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>

namespace {

using weir::Filter;
using weir::FilterRequest;
using weir::LimitBy;
using weir::Quota;

constexpr int kClients = 100'000;

std::string Address(int client) {
  return "10." + std::to_string(client >> 16) + "." + std::to_string(client >> 8 & 255) + "." +
         std::to_string(client & 255);
}

double ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  long total = 0;
  long resident = 0;
  statm >> total >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

Filter Make() {
  weir::FilterOptions options{
      .rules = {{.name = "per-ip",
                 .by = {LimitBy::kIp},
                 .quota = *Quota::SlidingLog(100, std::chrono::minutes(60))}}};
  options.engine.max_keys = kClients;
  return std::move(*Filter::Create(std::move(options)));
}

void Measure(int entries) {
  const double before = ResidentBytes();
  Filter filter = Make();
  const auto start = std::chrono::steady_clock::now();
  for (int round = 0; round < entries; ++round) {
    for (int client = 0; client < kClients; ++client) {
      const std::string peer = Address(client);
      filter.Check(FilterRequest{.method = "GET", .target = "/", .peer = peer, .header = nullptr});
    }
  }
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
  const double bytes = (ResidentBytes() - before) / static_cast<double>(filter.engine().size());
  std::printf("figure filter.sliding_log.bytes_per_key.%dentries %.0f bytes\n", entries, bytes);
  std::printf("figure filter.sliding_log.check_ns.%dentries %.0f ns\n", entries,
              took.count() / kClients / entries);
  std::printf("figure filter.sliding_log.evicted_active.%dentries %llu keys\n", entries,
              static_cast<unsigned long long>(filter.engine().stats().evicted_active));
}

/// Forks a process for each, so that neither is affected by what the other left behind.
void MeasureApart(int entries) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    Measure(entries);
    std::fflush(stdout);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
}

}  // namespace

int main() {
  MeasureApart(1);
  MeasureApart(10);
  MeasureApart(100);
  return 0;
}
