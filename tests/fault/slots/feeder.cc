// One process of a feed, for many_processes_test: feeder URL INDEX PROCESSES THREADS EVENTS OUT.
//
// EVENTS of this process's own and a ninth as many of its neighbor's request the same time,
// singly, on THREADS threads. Every slot is a line of OUT, written before the next request;
// anything else is an error.

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "slots/combiner.h"
#include "slots/postgres/slot_store.h"

namespace weir::slots {
namespace {

constexpr Millis kNoon = 1'748'779'200'000;

Result<std::vector<Answer>> Assign(Combiner& combiner, Ask ask) {
  std::promise<Result<std::vector<Answer>>> promise;
  combiner.Assign({std::move(ask)}, [&](Result<std::vector<Answer>> answers) {
    promise.set_value(std::move(answers));
  });
  return promise.get_future().get();
}

bool HasSlot(const Answer& answer) {
  return answer.outcome == Outcome::kNew || answer.outcome == Outcome::kExisting;
}

void WriteLine(int out, const Answer& answer) {
  const std::string line = answer.slot.event_id + " " + std::to_string(answer.slot.window_start) +
                           " " + std::to_string(answer.slot.scheduled) + "\n";
  if (write(out, line.data(), line.size()) != static_cast<ssize_t>(line.size())) std::_Exit(3);
}

int Run(char** argv) {
  const std::string url = argv[1];
  const int index = std::atoi(argv[2]);
  const int processes = std::atoi(argv[3]);
  const int threads = std::atoi(argv[4]);
  const int events = std::atoi(argv[5]);
  const int out = open(argv[6], O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0644);
  postgres::PostgresSlotStore store({.url = url, .connections = 4});
  Combiner combiner(store, {.max_calls = 4});
  std::atomic<int> next{0};
  std::atomic<int> errors{0};
  const int total = events + events / 9;
  {
    std::vector<std::jthread> workers;
    for (int t = 0; t < threads; ++t) {
      workers.emplace_back([&, t] {
        std::mt19937_64 random(static_cast<std::uint64_t>(index * 1'000 + t));
        for (int i = next++; i < total; i = next++) {
          const int owner = i < events ? index : (index + 1) % processes;
          const int number = i < events ? i : i - events;
          Result<std::vector<Answer>> answers =
              Assign(combiner, {"p" + std::to_string(owner) + "-" + std::to_string(number),
                                "pay",
                                kNoon,
                                {},
                                static_cast<std::int64_t>(random() >> 1U)});
          if (answers.ok() && HasSlot(answers->front())) {
            WriteLine(out, answers->front());
          } else if (errors++ == 0) {
            std::fprintf(stderr, "%s\n",
                         answers.ok() ? "no window has room" : answers.error().message.c_str());
          }
        }
      });
    }
  }
  std::printf("done errors=%d\n", errors.load());
  return errors == 0 ? 0 : 1;
}

}  // namespace
}  // namespace weir::slots

int main(int argc, char** argv) { return argc == 7 ? weir::slots::Run(argv) : 2; }
