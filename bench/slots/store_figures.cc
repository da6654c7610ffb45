#include "store_figures.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <random>
#include <thread>
#include <vector>

namespace weir::bench {
namespace {

constexpr slots::Millis kNoon = 1'748'779'200'000;

void Require(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "slots: %s\n", status.error().message.c_str());
  std::exit(1);
}

}  // namespace

void PutConfig(slots::SlotStore& store, const std::string& name, std::int64_t max,
               slots::Millis window) {
  std::promise<Status> made;
  store.PutConfig({.name = name, .window_size = window, .max_per_window = max},
                  [&](Result<slots::Config> config) {
                    made.set_value(config.ok() ? Status() : Status(config.error()));
                  });
  Require(made.get_future().get());
}

double AssignInBatches(slots::SlotStore& store, const std::string& name, const std::string& prefix,
                       std::int64_t count, std::size_t batch, int calls) {
  std::atomic<std::int64_t> next{0};
  const auto begun = std::chrono::steady_clock::now();
  std::vector<std::thread> callers;
  for (int c = 0; c < calls; ++c) {
    callers.emplace_back([&, c] {
      std::mt19937_64 random(static_cast<std::uint64_t>(c));
      for (;;) {
        const std::int64_t from = next.fetch_add(static_cast<std::int64_t>(batch));
        if (from >= count) return;
        std::vector<slots::Ask> asks;
        for (std::int64_t i = from; i < std::min(count, from + static_cast<std::int64_t>(batch));
             ++i) {
          asks.push_back({prefix + std::to_string(i),
                          name,
                          kNoon,
                          {},
                          static_cast<std::int64_t>(random() >> 1U)});
        }
        std::promise<Status> done;
        store.AssignMany(std::move(asks), [&](Result<std::vector<slots::Answer>> answers) {
          done.set_value(answers.ok() ? Status() : Status(answers.error()));
        });
        Require(done.get_future().get());
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

double ClaimAndFinish(slots::SlotStore& store, const std::string& name, std::int64_t count,
                      std::size_t batch, int callers) {
  std::atomic<std::int64_t> done{0};
  const auto begun = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  for (int c = 0; c < callers; ++c) {
    threads.emplace_back([&] {
      while (done < count) {
        std::promise<Result<slots::Claim>> claimed;
        store.ClaimDue({.config = name, .max = batch, .lease = 60'000, .by = "bench"},
                       [&](Result<slots::Claim> claim) { claimed.set_value(std::move(claim)); });
        Result<slots::Claim> claim = claimed.get_future().get();
        if (!claim.ok()) Require(claim.error());
        if (claim->events.empty()) continue;
        std::vector<slots::Finish> ends;
        for (const slots::Claimed& event : claim->events) {
          ends.push_back({.event_id = event.slot.event_id, .attempt = event.attempt});
        }
        done += static_cast<std::int64_t>(ends.size());
        std::promise<Status> told;
        store.FinishMany(std::move(ends), [&](Result<std::vector<slots::Finished>> answers) {
          told.set_value(answers.ok() ? Status() : Status(answers.error()));
        });
        Require(told.get_future().get());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

double SecondsUntilDone(slots::SlotStore& store, const std::string& name) {
  const auto begun = std::chrono::steady_clock::now();
  for (bool open = true; open;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::promise<Result<std::vector<slots::Backlog>>> read;
    store.ListBacklogs(0, [&](Result<std::vector<slots::Backlog>> backlogs) {
      read.set_value(std::move(backlogs));
    });
    const Result<std::vector<slots::Backlog>> backlogs = read.get_future().get();
    if (!backlogs.ok()) Require(backlogs.error());
    for (const slots::Backlog& backlog : *backlogs) {
      if (backlog.config == name) open = backlog.due > 0 || backlog.claimed > 0;
    }
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

}  // namespace weir::bench
