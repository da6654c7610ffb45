#pragma once

// Only for the files of World.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "world.h"

namespace weir::simulation {

struct World::Node {
  Node(const Events& events, Nanos offset, std::int64_t ppm, std::uint64_t seed,
       std::shared_ptr<const policy::PolicySet> first)
      : clock(events, offset, ppm),
        pulse(std::make_shared<Pulse>()),
        random(seed),
        policies(std::move(first)) {}

  std::size_t index = 0;
  std::uint64_t refunded = 0;  // to the running process
  NodeClock clock;
  std::shared_ptr<Pulse> pulse;
  Link link;
  std::mt19937_64 random;
  policy::LivePolicies policies;
  std::vector<Admission> degraded;   // of the running process, by the node's clock
  std::unique_ptr<Process> process;  // null: crashed
};

}  // namespace weir::simulation
