#include "store/redis/single.h"

#include <cstring>
#include <initializer_list>
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
  // Numbers of buckets stay below 2^51 as well.
  constexpr std::int64_t kLeastWidth = 1 << 13;
  const std::int64_t width = BucketWidth(quota);
  return width >= kLeastWidth && width < kPlain / (2 * (quota.buckets() + 2));
}

std::string Packed(std::initializer_list<std::int64_t> numbers) {
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

std::string NumbersOf(const Charge& charge, Shape shape, Nanos reference) {
  const Quota& quota = *charge.quota;
  const std::int64_t seconds = reference / kWholeSecond;
  const std::int64_t high = reference >> 32;
  const std::int64_t low = reference & 0xFFFFFFFF;
  if (shape == Shape::kTokenBucket) {
    const auto time = algorithm::token_bucket::TimeOf(quota, charge.cost);
    return Packed({seconds, high, low, quota.window().count(), QuotaAccess::window_frac(quota),
                   QuotaAccess::refill(quota), static_cast<std::int64_t>(time.ns),
                   static_cast<std::int64_t>(time.frac), 0});
  }
  const bool counts = shape == Shape::kSlidingCounter;
  const std::int64_t width = counts ? BucketWidth(quota) : quota.window().count();
  const std::int64_t index = algorithm::FloorDivide(reference, width);
  const std::int64_t position = algorithm::Of(quota).aligned ? reference - index * width : -1;
  return Packed({seconds, high, low, quota.limit(), charge.cost, width, position,
                 counts ? index : 0, counts ? quota.buckets() : 0});
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
  const std::string numbers = NumbersOf(charge, shape, call.reference);
  call.arguments.Reserve(name.size() + numbers.size() + 64);
  call.arguments.Add("1").Add(name).Add(numbers);
  if (now) call.arguments.Add(near - call.reference);
  return call;
}

}  // namespace weir::store::redis
