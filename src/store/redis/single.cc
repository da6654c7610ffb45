#include "store/redis/single.h"

#include <array>
#include <cstring>
#include <span>
#include <string>

#include "algorithm/algorithms.h"
#include "algorithm/answer.h"
#include "algorithm/quota_access.h"
#include "algorithm/time_range.h"
#include "algorithm/token_bucket.h"

namespace weir::store::redis {
namespace {

constexpr std::int64_t kWholeSecond = 1'000'000'000;
// Sums of a few such numbers are exact in a double.
constexpr std::int64_t kPlain = std::int64_t{1} << 51;

std::int64_t BucketWidth(const Quota& quota) {
  return (quota.window().count() - 1) / quota.buckets() + 1;
}

bool CounterIsPlain(const Quota& quota) {
  // Indexes of buckets stay below 2^51 as well.
  constexpr std::int64_t kLeastWidth = 1 << 13;
  const std::int64_t width = BucketWidth(quota);
  return width >= kLeastWidth && width < kPlain / (2 * (quota.buckets() + 2));
}

std::string Packed(std::span<const std::int64_t> numbers) {
  std::string out;
  out.reserve(numbers.size() * sizeof(double));
  for (const std::int64_t number : numbers) {
    const auto value = static_cast<double>(number);
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    out.append(bytes, sizeof value);
  }
  return out;
}

/// The high word of the 2^34 ns step that contains `end`.
std::int64_t StepOf(Nanos end) { return end >> 34 << 2; }
/// When that step is over, in milliseconds: keys expire then (quotas.lua).
std::int64_t MillisAfter(std::int64_t step) { return ((step + 4) << 32) / 1'000'000 + 1; }

/// The arguments of a script for its charge.
struct Told {
  Nanos end;                            // of the new state, if the key is fresh
  std::array<std::int64_t, 6> numbers;  // of the shape
};

Told ToldOf(const Charge& charge, Shape shape, Nanos reference) {
  const Quota& quota = *charge.quota;
  if (shape == Shape::kTokenBucket) {
    const auto time = algorithm::token_bucket::TimeOf(quota, charge.cost);
    const auto nanos = static_cast<std::int64_t>(time.ns);
    return {reference + nanos,
            {quota.window().count(), QuotaAccess::window_frac(quota), QuotaAccess::refill(quota),
             nanos, static_cast<std::int64_t>(time.frac)}};
  }
  const bool counts = shape == Shape::kSlidingCounter;
  const std::int64_t width = counts ? BucketWidth(quota) : quota.window().count();
  const std::int64_t index = algorithm::FloorDivide(reference, width);
  const std::int64_t buckets = counts ? quota.buckets() : 0;
  if (!algorithm::Of(quota).aligned) {
    return {reference + width, {quota.limit(), charge.cost, width, -1}};
  }
  return {
      (index + 1 + buckets) * width,
      {quota.limit(), charge.cost, width, reference - index * width, counts ? index : 0, buckets}};
}

}  // namespace

std::optional<Shape> SingleShape(const Application& application) {
  if (application.op != Op::kCharge || application.charges.size() != 1) return std::nullopt;
  const Charge& charge = application.charges[0];
  const Quota& quota = *charge.quota;
  if (charge.cost <= 0 || charge.cost > quota.limit()) return std::nullopt;
  switch (quota.algorithm()) {
    case Algorithm::kTokenBucket:
      if (quota.window().count() < kPlain) return Shape::kTokenBucket;
      return std::nullopt;
    case Algorithm::kFixedWindow:
    case Algorithm::kAnchoredWindow:
      if (quota.window().count() < kPlain) return Shape::kWindow;
      return std::nullopt;
    case Algorithm::kSlidingCounter:
      if (CounterIsPlain(quota)) return Shape::kSlidingCounter;
      return std::nullopt;
    case Algorithm::kSlidingLog:
    case Algorithm::kConcurrency:
      return std::nullopt;
  }
  return std::nullopt;
}

SingleCall EncodeSingle(const Names& names, const Application& application, Shape shape,
                        Nanos reference, std::optional<Nanos> now) {
  // Whole seconds: the script then has one number less to add.
  const Nanos near = algorithm::ClampTime(now.value_or(reference));
  SingleCall call;
  call.reference = algorithm::FloorDivide(near, kWholeSecond) * kWholeSecond;
  const Charge& charge = application.charges[0];
  std::string name;
  names.Append(charge.key, charge.quota->algorithm(), name);
  const Told told = ToldOf(charge, shape, call.reference);
  const std::int64_t step = StepOf(told.end);
  const auto& of_shape = told.numbers;
  const std::int64_t numbers[] = {call.reference / kWholeSecond,
                                  call.reference >> 32,
                                  call.reference & 0xFFFFFFFF,
                                  step,
                                  of_shape[0],
                                  of_shape[1],
                                  of_shape[2],
                                  of_shape[3],
                                  of_shape[4],
                                  of_shape[5]};
  call.arguments.Reserve(name.size() + sizeof numbers + 96);
  call.arguments.Add("1").Add(name).Add(Packed(numbers)).Add(MillisAfter(step));
  if (now) call.arguments.Add(near - call.reference);
  return call;
}

}  // namespace weir::store::redis
