// A check on the memory store allocates nothing once everything is warmed up. Counted by replacing
// the program's operator new.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "unit/limiter/fixture.h"

namespace {
std::atomic<std::size_t> allocations{0};
}  // namespace

[[gnu::noinline]] void* operator new(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace weir::limiter {
namespace {

using test::Asked;
using test::World;

/// Answers immediately and allocates nothing, so that only the limiter's allocations are counted.
class EmptyStore final : public store::Store {
 public:
  void Apply(std::span<store::Application> batch, store::Done done) override {
    for (store::Application& application : batch) application.applied = true;
    done();
  }
};

/// Allocations in 1,000 rounds of single checks and of batches, after a few warm-up rounds.
std::size_t AllocationsOf(Limiter& limiter, World& world, const policy::Request& request) {
  Check single;
  single.request = request;
  std::vector<Check> batch(16);
  for (Check& check : batch) check.request = request;
  const auto round = [&] {
    limiter.Decide(std::span(&single, 1), [] {});
    limiter.Decide(batch, [] {});
    world.clock().Advance(std::chrono::milliseconds(10));
  };
  for (int i = 0; i < 50; ++i) round();
  const std::size_t before = allocations.load();
  EXPECT_GT(before, 0U);
  for (int i = 0; i < 1000; ++i) round();
  return allocations.load() - before;
}

TEST(PolicyLimiter, AllocatesNothingHoweverManyPoliciesApply) {
  World world(R"(
policies:
  - {name: a, match: {user: "*"}, quota: {token_bucket: {capacity: 50, refill_per_second: 10}}}
  - {name: b, match: {user: "*", route: "/v1/*"}, quota: {fixed_window: {limit: 20, window: 1m}}}
  - {name: c, match: {route: "*"}, shadow: true, quota: {sliding_counter: {limit: 9, window: 1m}}}
)");
  PolicyLimiter limiter(world.shared(), std::make_unique<EmptyStore>());
  Asked asked = Asked::For(
      {{"route", "/v1/a-rather-long-path-beyond-small-strings"}, {"user", "somebody@example.org"}});
  EXPECT_EQ(AllocationsOf(limiter, world, asked.check.request), 0U);
}

TEST(PolicyLimiter, AllocatesNothingPerCheckOnTheMemoryStore) {
  World world(R"(
policies:
  - {name: a, match: {user: "*"}, quota: {token_bucket: {capacity: 50, refill_per_second: 10}}}
  - {name: c, match: {route: "*"}, shadow: true, quota: {fixed_window: {limit: 9, window: 1m}}}
)");
  // Log lines allocate; their number per second of the wall clock is limited.
  world.shared().observe.refusals_per_second = 0;
  auto limiter = world.NewLimiter();
  Asked asked = Asked::For(
      {{"route", "/v1/a-rather-long-path-beyond-small-strings"}, {"user", "somebody@example.org"}});
  EXPECT_EQ(AllocationsOf(*limiter, world, asked.check.request), 0U);
  Asked key = Asked::Key("user-123-and-some-more-than-fits-into-a-small-string");
  EXPECT_EQ(AllocationsOf(*limiter, world, key.check.request), 0U);
}

}  // namespace
}  // namespace weir::limiter
