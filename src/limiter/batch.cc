#include "limiter/batch.h"

#include <algorithm>
#include <utility>

#include "algorithm/algorithms.h"
#include "policy/keys.h"

namespace weir::limiter {
namespace {

// Offsets into the text of the keys are 32 bits wide.
constexpr std::size_t kMaxBatchKeyBytes = std::size_t{1} << 30;

std::int64_t AskedCost(const policy::Request& request, std::size_t descriptor) noexcept {
  return descriptor < request.costs.size() ? request.costs[descriptor] : request.cost;
}

bool IsReported(const policy::Request& request, std::size_t descriptor) noexcept {
  return descriptor < request.reported.size() && request.reported[descriptor] != 0;
}

/// A bucket that always counts is peeked at with an overdraw of 0, which reports its debt.
store::Op OpFor(const Check& check, const Batch::Item& item) noexcept {
  const bool look = check.op == store::Op::kPeek && item.cost == 0;
  if (item.always_counts && (look || check.op == store::Op::kCharge)) return store::Op::kOverdraw;
  return check.op;
}

bool HoldsPermits(const Batch::Item& item) noexcept {
  return item.quota != nullptr && algorithm::Of(*item.quota).leases;
}

}  // namespace

// The quota itself refuses a cost above every limit as kNever; it only must not overflow.
std::int64_t Batch::CostOf(std::int64_t asked, std::int64_t factor) noexcept {
  std::int64_t cost = 0;
  if (__builtin_mul_overflow(asked, factor, &cost)) return kMaxLimit + 1;
  return std::clamp<std::int64_t>(cost, 0, kMaxLimit + 1);
}

void Batch::SetMode(Item& item, bool reported) const noexcept {
  const policy::Definition& definition = item.policy->definition;
  item.always_counts = reported ? definition.report_counts() : definition.always_counts();
  item.alone = item.always_counts || !policy::ChargesTogether(definition.charge);
  // More than the limit never fits, and zero stays zero. No one gets back more than was charged.
  if (definition.blocked && item.quota != nullptr && item.cost > 0 && !gives_back_) {
    item.cost = std::min(item.cost + item.quota->limit(), kMaxLimit + 1);
  }
}

void Batch::Build(std::shared_ptr<const std::shared_ptr<const policy::PolicySet>> policies,
                  std::span<Check> all) {
  policies_ = std::move(policies);
  checks = all;
  keys_.clear();
  items_.clear();
  parts_.clear();
  charges_.clear();
  terms_.clear();
  any_leased_ = false;
  applications_.clear();
  layouts_.clear();
  stamps_.clear();
  reserved_.clear();
  const policy::PolicySet& set = **policies_;
  for (std::size_t i = 0; i < checks.size(); ++i) {
    Check& check = checks[i];
    Part part{static_cast<std::uint32_t>(items_.size()), 0};
    check_begin_ = items_.size();
    gives_back_ = check.op == store::Op::kRefund;
    const bool settles = check.op == store::Op::kSettle;
    check.status = settles ? CollectSettled(check) : Collect(set, check.request);
    if (!check.status.ok()) items_.resize(part.begin);
    part.end = static_cast<std::uint32_t>(items_.size());
    const Sharing once = check.request.each_time ? Sharing::kDescriptor : Sharing::kRequest;
    ShareBuckets(part, settles ? Sharing::kNone : once);
    if (check.reserve.count() > 0 && check.op == store::Op::kCharge && check.status.ok()) {
      check.status = MakeRecords(part, i);
      if (!check.status.ok()) items_.resize(part.end = part.begin);
    }
    parts_.push_back(part);
  }
  // From here on the text of the keys does not move.
  for (std::size_t i = 0; i < checks.size(); ++i) AddApplications(parts_[i], checks[i]);
  decisions_.resize(std::max(decisions_.size(), charges_.size()));
  for (std::size_t i = 0; i < applications_.size(); ++i) {
    const Layout& layout = layouts_[i];
    applications_[i].charges = std::span(charges_).subspan(layout.first_charge, layout.charges);
    applications_[i].decisions = std::span(decisions_).subspan(layout.first_charge, layout.charges);
    if (applications_[i].op == store::Op::kSettle) {
      applications_[i].stamps = std::span(stamps_).subspan(layout.first_charge, layout.charges);
    }
    if (any_leased_ && !layout.exact) {
      applications_[i].terms = std::span(terms_).subspan(layout.first_charge, layout.charges);
    }
  }
}

std::span<store::Application> Batch::WithoutUnable() {
  for (const Item& item : items_) {
    if (item.application == kNone || item.policy == nullptr || item.policy->unable.empty())
      continue;
    applications_[item.application].status = Error{Code::kUnavailable, item.policy->unable};
  }
  asked_.clear();
  asked_indices_.clear();
  for (std::uint32_t i = 0; i < applications_.size(); ++i) {
    if (!applications_[i].status.ok()) continue;
    asked_.push_back(applications_[i]);
    asked_indices_.push_back(i);
  }
  return asked_;
}

void Batch::TakeAnswers() {
  for (std::size_t i = 0; i < asked_.size(); ++i) applications_[asked_indices_[i]] = asked_[i];
}

Status Batch::Collect(const policy::PolicySet& set, const policy::Request& request) {
  if (!request.key.empty()) return CollectKey(set, request);
  // A request without descriptors still falls under the policies that apply to every request.
  const std::size_t count = std::max<std::size_t>(request.descriptors.size(), 1);
  for (std::size_t i = 0; i < count; ++i) {
    if (Status found = CollectDescriptor(set, request, i); !found.ok()) return found;
  }
  if (!request.subjects.empty()) {
    if (Status found = CollectSubjects(set, request); !found.ok()) return found;
  }
  if (set.any_replaces()) DropReplaced();
  return {};
}

/// Removes the policies that others of the same check replace, whichever descriptor they apply
/// to.
void Batch::DropReplaced() {
  const auto begin = items_.begin() + static_cast<std::ptrdiff_t>(check_begin_);
  const auto replaced = [this, begin](const Item& item) {
    if (item.policy == nullptr) return false;
    return std::any_of(begin, items_.end(), [&item](const Item& other) {
      // A policy on trial does not replace an enforced one.
      if (other.policy == nullptr || (other.shadow() && !item.shadow())) return false;
      if (other.policy->definition.domain != item.policy->definition.domain) return false;
      const std::vector<std::string>& names = other.policy->definition.replaces;
      return std::find(names.begin(), names.end(), item.policy->definition.name) != names.end();
    });
  };
  // Marked first and removed afterwards, so that policies that replace each other are both removed.
  std::vector<bool> marks(items_.size() - check_begin_);
  for (std::size_t i = 0; i < marks.size(); ++i) marks[i] = replaced(items_[check_begin_ + i]);
  std::size_t kept = check_begin_;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    if (!marks[i]) items_[kept++] = items_[check_begin_ + i];
  }
  items_.resize(kept);
}

Status Batch::CollectDescriptor(const policy::PolicySet& set, const policy::Request& request,
                                std::size_t index) {
  const policy::Descriptor descriptor =
      index < request.descriptors.size() ? request.descriptors[index] : policy::Descriptor();
  const std::int64_t asked = AskedCost(request, index);
  const bool reported = IsReported(request, index);
  Item item;
  item.descriptor = static_cast<std::uint32_t>(index);
  if (index < request.overrides.size() && request.overrides[index] != nullptr &&
      set.HasDomain(request.domain)) {
    const std::size_t key_at = keys_.size();
    policy::AppendOverrideKey(keys_, request.domain, descriptor, *request.overrides[index]);
    item.quota = request.overrides[index];
    item.cost = CostOf(asked, 1);
    const policy::ChargeMode mode = set.ChargeModeOf(request.domain);
    item.always_counts =
        mode == policy::ChargeMode::kAlways || (reported && mode == policy::ChargeMode::kReports);
    item.alone = item.always_counts || !policy::ChargesTogether(mode);
    return FinishKey(item, key_at);
  }
  set.Match(request.domain, descriptor, match_);
  if (match_.cut) {
    return Error{Code::kInvalidArgument, "too many entries of the same names in one descriptor"};
  }
  for (const policy::Applying& applying : match_.applying) {
    const std::size_t key_at = keys_.size();
    item.policy = applying.policy;
    item.quota = applying.policy->quota();
    item.lease = applying.policy->lease ? &*applying.policy->lease : nullptr;
    item.cost = CostOf(asked, applying.policy->definition.cost);
    SetMode(item, reported);
    if (item.quota != nullptr) {
      policy::AppendKey(keys_, applying.policy->key_parts,
                        std::span(match_.values).subspan(applying.values_begin));
    }
    if (Status kept = FinishKey(item, key_at); !kept.ok()) return kept;
  }
  return {};
}

Status Batch::FinishKey(Item item, std::size_t key_at) {
  if (items_.size() - check_begin_ >= kMaxVerdicts) {
    return Error{Code::kInvalidArgument,
                 "more than " + std::to_string(kMaxVerdicts) + " policies apply to one check"};
  }
  if (keys_.size() >= kMaxBatchKeyBytes) {
    return Error{Code::kResourceExhausted, "too many checks in one batch"};
  }
  item.key_at = static_cast<std::uint32_t>(key_at);
  item.key_size = static_cast<std::uint32_t>(keys_.size() - key_at);
  items_.push_back(item);
  return {};
}

// Descriptors of one request, and two entries of one that begin with the same prefix, may lead to
// the same bucket; it is charged once, with the largest cost.
void Batch::ShareBuckets(Part part, Sharing sharing) {
  for (std::uint32_t i = part.begin; i < part.end; ++i) {
    Item& item = items_[i];
    item.charged_as = i;
    if (item.quota == nullptr || sharing == Sharing::kNone) continue;
    for (std::uint32_t j = part.begin; j < i; ++j) {
      Item& earlier = items_[j];
      if (sharing == Sharing::kDescriptor && earlier.descriptor != item.descriptor) continue;
      // Has the same policy, so it has a quota as well.
      if (earlier.policy != item.policy || earlier.charged_as != j ||
          KeyOf(earlier) != KeyOf(item)) {
        continue;
      }
      item.charged_as = j;
      earlier.cost = std::max(earlier.cost, item.cost);
      break;
    }
  }
}

void Batch::AddApplications(Part part, const Check& check) {
  if (check.op == store::Op::kRelease) return AddReleases(part, check);
  Reserved* const reserved = ReservedOf(static_cast<std::size_t>(&check - checks.data()));
  if (reserved != nullptr) {
    reserved->keys.reserve(reserved->reservation.groups.size());  // views are taken while it grows
    if (check.op == store::Op::kSettle) return AddSettling(part, check, *reserved);
  }
  const auto lay = [&](store::Op op) {
    Lay(check, op);
    if (reserved != nullptr) AddRecord(*reserved, reserved->applications.size());
  };
  bool open = false;
  for (std::uint32_t i = part.begin; i < part.end; ++i) {
    Item& item = items_[i];
    if (item.charged_as != i || !item.together()) continue;
    if (!std::exchange(open, true)) lay(check.op);
    AddCharge(item);
  }
  for (std::uint32_t i = part.begin; i < part.end; ++i) {
    Item& item = items_[i];
    if (item.charged_as != i || item.quota == nullptr || item.together()) continue;
    lay(reserved != nullptr ? check.op : OpFor(check, item));
    AddCharge(item);
  }
}

Batch::Item* Batch::FirstConcurrency(Part part, bool shadow) noexcept {
  for (std::uint32_t i = part.begin; i < part.end; ++i) {
    if (HoldsPermits(items_[i]) && items_[i].shadow() == shadow) return &items_[i];
  }
  return nullptr;
}

/// Each permit is released to its own bucket only: leases of two buckets may have the same number.
void Batch::AddReleases(Part part, const Check& check) {
  if (check.permits.empty()) {
    Item* item = FirstConcurrency(part, false);
    if (item == nullptr) item = FirstConcurrency(part, true);
    if (item == nullptr) return;
    Lay(check, check.op);
    AddCharge(*item);
    return;
  }
  std::vector<bool> used(check.permits.size());
  for (std::uint32_t i = part.begin; i < part.end; ++i) {
    if (items_[i].charged_as != i || !HoldsPermits(items_[i])) continue;
    const std::uint32_t tag = BucketTag(KeyOf(items_[i]));
    for (std::size_t k = 0; k < check.permits.size(); ++k) {
      if (used[k] || check.permits[k].bucket != tag) continue;
      used[k] = true;
      Lay(check, check.op);
      applications_.back().lease = check.permits[k].lease;
      AddCharge(items_[i]);
      break;
    }
  }
}

void Batch::Lay(const Check& check, store::Op op) {
  store::Application& application = applications_.emplace_back();
  application.op = op;
  application.lease = check.lease;
  layouts_.push_back({static_cast<std::uint32_t>(charges_.size()), 0, false});
}

void Batch::AddCharge(Item& item) {
  item.application = static_cast<std::uint32_t>(applications_.size() - 1);
  item.position = layouts_.back().charges++;
  // Currently leased or not, every charge of a leased policy uses the narrowed quota.
  const Quota* quota = item.lease == nullptr ? item.quota : &item.lease->quota;
  charges_.push_back({KeyOf(item), item.cost, quota});
  terms_.push_back(item.lease);
  any_leased_ |= item.lease != nullptr;
  if (item.settles == nullptr) return;
  stamps_.resize(charges_.size());
  stamps_.back() = item.settles->stamp;
}

}  // namespace weir::limiter
