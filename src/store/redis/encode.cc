// The packed arguments of the script, which reads them with the same formats.

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "algorithm/algorithms.h"
#include "algorithm/answer.h"
#include "algorithm/quota_access.h"
#include "algorithm/time_range.h"
#include "algorithm/token_bucket.h"
#include "base/int128.h"
#include "store/redis/call.h"

namespace weir::store::redis {
namespace {

static_assert(std::endian::native == std::endian::little, "values are copied as they lie");
// The script contains it as two halves.
static_assert(algorithm::kLatest == (Nanos{1412724991} << 32) + 4221370367);

constexpr std::int64_t kSecond = 1'000'000'000;
// The script's code for a kCharge that is a reservation: its first charge says for how long.
constexpr std::uint16_t kReserve = static_cast<std::uint16_t>(Op::kSettle) + 1;
// Above every limit, and exact in Lua.
constexpr std::int64_t kMaxCost = std::int64_t{1} << 52;
// The largest distance between reference and now that the script accepts.
constexpr Nanos kFarthest = Nanos{1} << 51;

template <typename T>
void Put(std::string& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

/// Numbers each distinct value in order of first appearance, from 1 as in Lua.
template <typename Key, typename Hash = std::hash<Key>, typename Equal = std::equal_to<Key>>
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
  std::unordered_map<Key, std::uint16_t, Hash, Equal> numbers_;
};

std::size_t HashOf(std::initializer_list<std::int64_t> numbers) noexcept {
  std::uint64_t hash = 0;
  for (const std::int64_t number : numbers) hash = hash * 31 + static_cast<std::uint64_t>(number);
  return std::hash<std::uint64_t>()(hash);
}

// By value: a caller may have copied the quota for each charge.
struct QuotaHash {
  std::size_t operator()(const Quota* quota) const noexcept {
    const auto algorithm = static_cast<std::int64_t>(quota->algorithm());
    return HashOf({algorithm, quota->limit(), quota->window().count()});
  }
};
struct QuotaEqual {
  bool operator()(const Quota* a, const Quota* b) const noexcept { return a == b || *a == *b; }
};

/// The terms of a charge.
struct Term {
  std::uint16_t quota = 0;
  std::int64_t cost = 0;
  std::int64_t time = 0;   // in which a token bucket's permits flow in, or the lease
  std::uint32_t frac = 0;  // plus this fraction of a nanosecond
  bool operator==(const Term&) const = default;
};
struct TermHash {
  std::size_t operator()(const Term& term) const noexcept {
    return HashOf({term.quota, term.cost, term.time});
  }
};

/// The applications, as the script's steps: runs with the same operation and the same number of
/// charges, each charge a key and a term.
class Steps {
 public:
  void Begin(Op op, std::size_t count) { Begin(static_cast<std::uint16_t>(op), count); }
  void Begin(std::uint16_t op, std::size_t count) {
    const std::uint16_t head[] = {op, static_cast<std::uint16_t>(count)};
    if (times_at_ != 0 && std::equal(head, head + 2, &words_[times_at_ - 2])) {
      ++words_[times_at_];
      return;
    }
    words_.insert(words_.end(), {head[0], head[1], 1});
    times_at_ = words_.size() - 1;
  }
  void Add(std::uint16_t key, std::uint16_t term) { words_.insert(words_.end(), {key, term}); }

  /// A MessagePack array, which the script turns into a table with one call.
  std::string Packed() const {
    std::string out = "\xdd";
    out.reserve(5 + 3 * words_.size());
    for (const unsigned shift : {24U, 16U, 8U, 0U}) {
      out += static_cast<char>(words_.size() >> shift);
    }
    for (const std::uint16_t word : words_) {
      if (word >= 128) out.append({'\xcd', static_cast<char>(word >> 8U)});
      out += static_cast<char>(word);
    }
    return out;
  }

 private:
  std::vector<std::uint16_t> words_;
  std::size_t times_at_ = 0;
};

class Encoder {
 public:
  Encoder(const Names& names, Nanos reference, std::optional<Nanos> now)
      : names_(names), reference_(reference), now_(now) {}

  void Add(const Application& application) {
    if (application.op == Op::kReset) return AddReset(application);
    if (application.op == Op::kLease) return AddLease(application);
    if (application.op == Op::kReturn) return AddReturn(application);
    if (application.op == Op::kSettle) return AddSettle(application);
    const bool reserves = application.op == Op::kCharge && ReservedFor(application.charges) > 0;
    const auto op = static_cast<std::uint16_t>(application.op);
    steps_.Begin(reserves ? kReserve : op, application.charges.size());
    for (const Charge& charge : application.charges) {
      const std::uint16_t key = KeyNumber(charge.key, charge.quota->algorithm());
      steps_.Add(key, TermNumber(TermOf(application, charge)));
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
    Put(head, static_cast<std::uint16_t>(term_numbers_.size()));
    const std::string steps = steps_.Packed();
    weir::redis::Command arguments;
    arguments.Reserve(keys_.size() + quotas_.size() + terms_.size() + steps.size() + 256);
    arguments.Add(static_cast<std::int64_t>(key_numbers_.size())).Append(keys_);
    arguments.Add(head).Add(quotas_).Add(terms_).Add(steps);
    return arguments;
  }

 private:
  // Resets a key under every algorithm, without terms.
  void AddReset(const Application& application) {
    steps_.Begin(Op::kReset, application.charges.size() * algorithm::kCount);
    for (const Charge& charge : application.charges) {
      for (const algorithm::Descriptor& each : algorithm::kAlgorithms) {
        steps_.Add(KeyNumber(charge.key, each.algorithm), 0);
      }
    }
  }

  // A term for each cost that may be granted, in the order algorithm::Lease tries them.
  void AddLease(const Application& application) {
    Charge charge = application.charges.front();
    charge.cost = std::clamp<std::int64_t>(charge.cost, 0, charge.quota->limit());
    const auto tries =
        std::max<std::size_t>(std::bit_width(static_cast<std::uint64_t>(charge.cost)), 1);
    steps_.Begin(Op::kLease, tries);
    const std::uint16_t key = KeyNumber(charge.key, charge.quota->algorithm());
    for (std::size_t i = 0; i < tries; ++i, charge.cost /= 2) {
      steps_.Add(key, TermNumber(TermOf(application, charge)));
    }
  }

  void AddReturn(const Application& application) {
    const Charge& charge = application.charges.front();
    steps_.Begin(Op::kReturn, 2);
    const std::uint16_t key = KeyNumber(charge.key, charge.quota->algorithm());
    steps_.Add(key, TermNumber(TermOf(application, charge)));
    Term charged{QuotaNumber(*charge.quota)};
    charged.time = application.lease;
    steps_.Add(key, TermNumber(charged));
  }

  /// A charge has two entries: its change, and its stamp (for the first, the lease).
  void AddSettle(const Application& application) {
    steps_.Begin(Op::kSettle, application.charges.size());
    for (std::size_t i = 0; i < application.charges.size(); ++i) {
      const Charge& charge = application.charges[i];
      const std::uint16_t key = KeyNumber(charge.key, charge.quota->algorithm());
      steps_.Add(key, TermNumber(TermOf(application, charge)));
      Term stamp{QuotaNumber(*charge.quota)};
      stamp.time = i == 0 ? application.lease : application.stamps[i];
      steps_.Add(key, TermNumber(stamp));
    }
  }

  Term TermOf(const Application& application, const Charge& charge) {
    const Quota& quota = *charge.quota;
    Term term{QuotaNumber(quota), std::clamp(charge.cost, -kMaxCost, kMaxCost)};
    std::int64_t cost = charge.cost;
    if (application.op == Op::kRefund || application.op == Op::kReturn) {
      cost = std::min(cost, quota.limit());
    }
    if (application.op == Op::kSettle && cost < 0) {
      cost = std::min(-std::max(cost, -kMaxLimit), quota.limit());
    }
    if (application.op == Op::kRelease) {
      term.time = application.lease;
    } else if (algorithm::Of(quota).refills() && cost > 0) {
      const bool settles = application.op == Op::kSettle;
      const bool overdraws = application.op == Op::kOverdraw || (settles && charge.cost > 0);
      if (!overdraws && cost > quota.limit()) return term;
      const algorithm::token_bucket::Span span = overdraws
                                                     ? algorithm::BoundedTimeOf(quota, cost)
                                                     : algorithm::token_bucket::TimeOf(quota, cost);
      term.time = static_cast<std::int64_t>(span.ns);
      term.frac = static_cast<std::uint32_t>(span.frac);
    }
    return term;
  }

  std::uint16_t TermNumber(const Term& term) {
    const auto [number, is_new] = term_numbers_.Of(term);
    if (!is_new) return number;
    Put(terms_, term.quota);
    Put(terms_, static_cast<double>(term.cost));
    Put(terms_, term.time);
    Put(terms_, term.frac);
    return number;
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
    const algorithm::Descriptor& kind = algorithm::Of(quota);
    if (kind.has_buckets) width = (width - 1) / quota.buckets() + 1;
    const bool in_windows = kind.aligned;
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
  Index<const Quota*, QuotaHash, QuotaEqual> quota_numbers_;
  Index<Term, TermHash> term_numbers_;
  weir::redis::Command keys_;
  std::string quotas_;
  std::string terms_;
  Steps steps_;
  std::string name_;
};

}  // namespace

weir::redis::Command Encode(const Names& names, std::span<Application* const> applications,
                            Nanos reference, std::optional<Nanos> now) {
  reference = algorithm::ClampTime(reference);
  if (now) {
    now = algorithm::ClampTime(*now);
    // Otherwise the script would request a nearer one.
    if (Int128{*now} - reference > kFarthest || Int128{reference} - *now > kFarthest) {
      reference = *now;
    }
  }
  Encoder encoder(names, reference, now);
  for (const Application* application : applications) encoder.Add(*application);
  return encoder.Finish();
}

}  // namespace weir::store::redis
