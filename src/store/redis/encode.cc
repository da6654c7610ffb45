// The packed arguments of the script, which reads them with the same formats.

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <unordered_map>
#include <utility>

#include "algorithm/answer.h"
#include "algorithm/quota_access.h"
#include "algorithm/time_range.h"
#include "algorithm/token_bucket.h"
#include "base/int128.h"
#include "store/redis/call.h"

namespace weir::store::redis {
namespace {

static_assert(std::endian::native == std::endian::little, "values are copied as they lie");
// The script knows it by its two halves.
static_assert(algorithm::kLatest == (Nanos{1412724991} << 32) + 4221370367);

constexpr std::int64_t kSecond = 1'000'000'000;
// Beyond every limit, and exact in Lua.
constexpr std::int64_t kMaxCost = std::int64_t{1} << 52;
// The farthest that the script takes a reference to be from now.
constexpr Nanos kFarthest = Nanos{1} << 51;

template <typename T>
void Put(std::string& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

/// Numbers each different thing in the order of its first appearance, from 1 as Lua does.
template <typename Key>
class Index {
 public:
  /// The number, and whether it is new.
  std::pair<std::uint16_t, bool> Of(const Key& key) {
    const auto [found, is_new] =
        numbers_.try_emplace(key, static_cast<std::uint16_t>(numbers_.size() + 1));
    return {found->second, is_new};
  }
  std::size_t size() const noexcept { return numbers_.size(); }

 private:
  std::unordered_map<Key, std::uint16_t> numbers_;
};

class Encoder {
 public:
  Encoder(const Names& names, Nanos reference, std::optional<Nanos> now)
      : names_(names), reference_(reference), now_(now) {}

  void Add(const Application& application) {
    if (application.op == Op::kReset) return AddReset(application);
    Begin(application.op, application.charges.size());
    for (const Charge& charge : application.charges) {
      const Quota& quota = *charge.quota;
      AddCharge(charge.key, quota, charge.cost);
      if (application.op == Op::kRelease) {
        Put(text_, application.lease);
        Put(text_, std::uint32_t{0});
      } else {
        PutTime(quota, application.op, charge.cost);
      }
    }
  }

  weir::redis::Command Finish() {
    std::string head;
    const std::int64_t seconds = algorithm::FloorDivide(reference_, kSecond);
    Put(head, static_cast<std::uint8_t>(now_.has_value()));
    Put(head, reference_);
    Put(head, static_cast<double>(seconds));
    Put(head, static_cast<double>(reference_ - seconds * kSecond));
    Put(head, static_cast<double>(now_.value_or(reference_) - reference_));
    Put(head, static_cast<std::uint16_t>(quota_numbers_.size()));
    Put(head, applications_);
    weir::redis::Command arguments;
    arguments.Reserve(keys_.size() + quotas_.size() + text_.size() + 256);
    arguments.Add(static_cast<std::int64_t>(key_numbers_.size())).Append(keys_);
    arguments.Add(head).Add(quotas_).Add(text_);
    return arguments;
  }

 private:
  void Begin(Op op, std::size_t count) {
    ++applications_;
    Put(text_, static_cast<std::uint8_t>(op));
    Put(text_, static_cast<std::uint16_t>(count));
  }

  // A key is forgotten under every algorithm.
  void AddReset(const Application& application) {
    constexpr std::size_t kAlgorithms = 5;
    Begin(Op::kReset, application.charges.size() * kAlgorithms);
    for (const Charge& charge : application.charges) {
      for (std::size_t i = 0; i < kAlgorithms; ++i) {
        Put(text_, KeyNumber(charge.key, static_cast<Algorithm>(i)));
        Put(text_, std::uint16_t{0});
        Put(text_, double{0});
        text_.append(12, '\0');
      }
    }
  }

  void AddCharge(std::string_view key, const Quota& quota, std::int64_t cost) {
    Put(text_, KeyNumber(key, quota.algorithm()));
    Put(text_, QuotaNumber(quota));
    Put(text_, static_cast<double>(std::clamp(cost, -kMaxCost, kMaxCost)));
  }

  // The time that the permits of a token bucket take to flow in.
  void PutTime(const Quota& quota, Op op, std::int64_t cost) {
    algorithm::token_bucket::Span span;
    if (op == Op::kRefund) cost = std::min(cost, quota.limit());
    if (quota.algorithm() == Algorithm::kTokenBucket && cost > 0 && cost <= quota.limit()) {
      span = algorithm::token_bucket::TimeOf(quota, cost);
    }
    Put(text_, span.ns);
    Put(text_, static_cast<std::uint32_t>(span.frac));
  }

  std::uint16_t KeyNumber(std::string_view key, Algorithm algorithm) {
    name_.clear();
    names_.Append(key, algorithm, name_);
    const auto [number, is_new] = key_numbers_.Of(name_);
    if (is_new) keys_.Add(name_);
    return number;
  }

  std::uint16_t QuotaNumber(const Quota& quota) {
    const auto [number, is_new] = quota_numbers_.Of(&quota);
    if (!is_new) return number;
    Nanos width = quota.window().count();
    if (quota.algorithm() == Algorithm::kSlidingCounter) width = (width - 1) / quota.buckets() + 1;
    const bool in_windows = quota.algorithm() == Algorithm::kFixedWindow ||
                            quota.algorithm() == Algorithm::kSlidingCounter;
    const std::int64_t index = in_windows ? algorithm::FloorDivide(reference_, width) : 0;
    Put(quotas_, static_cast<std::uint8_t>(quota.algorithm()));
    Put(quotas_, static_cast<double>(quota.limit()));
    Put(quotas_, width);
    Put(quotas_, QuotaAccess::window_frac(quota));
    Put(quotas_, QuotaAccess::refill(quota));
    Put(quotas_, index);
    Put(quotas_, in_windows ? reference_ - index * width : Nanos{0});
    Put(quotas_, static_cast<std::uint16_t>(quota.buckets()));
    return number;
  }

  const Names& names_;
  const Nanos reference_;
  const std::optional<Nanos> now_;
  Index<std::string> key_numbers_;
  Index<const Quota*> quota_numbers_;
  weir::redis::Command keys_;
  std::string quotas_;
  std::string text_;
  std::uint16_t applications_ = 0;
  std::string name_;
};

}  // namespace

weir::redis::Command Encode(const Names& names, std::span<Application* const> applications,
                            Nanos reference, std::optional<Nanos> now) {
  reference = algorithm::ClampTime(reference);
  if (now) {
    now = algorithm::ClampTime(*now);
    // The script would ask for a nearer one.
    if (Int128{*now} - reference > kFarthest || Int128{reference} - *now > kFarthest) {
      reference = *now;
    }
  }
  Encoder encoder(names, reference, now);
  for (const Application* application : applications) encoder.Add(*application);
  return encoder.Finish();
}

}  // namespace weir::store::redis
