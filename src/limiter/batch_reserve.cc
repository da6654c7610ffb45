// The checks that reserve, and those that settle a reservation: store/reserve/reservation.h.

#include <algorithm>
#include <utility>

#include "limiter/batch.h"
#include "policy/keys.h"

namespace weir::limiter {
namespace {

// The policy name in answers for a quota that came with the request.
constexpr std::string_view kOverride = "override";

store::reserve::Share ShareOf(const Batch::Item& item, std::string_view key, std::int64_t asked) {
  store::reserve::Share share{.key = std::string(key),
                              .quota = item.lease == nullptr ? *item.quota : item.lease->quota};
  share.factor = item.cost / asked;
  share.policy =
      item.policy == nullptr ? kOverride : std::string_view(item.policy->definition.name);
  share.limit = item.quota->limit();
  share.shadow = item.shadow();
  return share;
}

}  // namespace

Batch::Reserved* Batch::ReservedOf(std::size_t check) noexcept {
  const auto found = std::ranges::lower_bound(reserved_, check, {}, &Reserved::check);
  return found != reserved_.end() && found->check == check ? &*found : nullptr;
}

/// All enforced charges go together, whatever `charge` and `overdraw` say: a reservation promises
/// that there is room, and if only some of the policies granted it, it could not be settled.
Status Batch::MakeRecords(Part part, std::size_t check) {
  const std::int64_t asked = checks[check].request.cost;
  if (asked < 1) return Error{Code::kInvalidArgument, "cost: a reservation needs at least 1"};
  Reserved reserved{.check = check,
                    .reservation = store::reserve::Begin(checks[check].reserve, asked),
                    .record = *Quota::Concurrency(1, std::chrono::seconds(1))};
  reserved.record = store::reserve::RecordQuota(reserved.reservation);
  std::vector<store::reserve::Group>& groups = reserved.reservation.groups;
  for (std::uint32_t i = part.begin; i < part.end; ++i) {
    Item& item = items_[i];
    item.alone = item.always_counts = false;
    if (item.charged_as != i || !item.together()) continue;
    if (groups.empty()) groups.emplace_back();
    groups.front().shares.push_back(ShareOf(item, KeyOf(item), asked));
  }
  for (std::uint32_t i = part.begin; i < part.end; ++i) {
    const Item& item = items_[i];
    if (item.charged_as != i || item.quota == nullptr || item.together()) continue;
    groups.emplace_back().shares.push_back(ShareOf(item, KeyOf(item), asked));
  }
  if (Status fits = store::reserve::CheckSize(reserved.reservation); !fits.ok()) return fits;
  reserved_.push_back(std::move(reserved));
  return {};
}

Status Batch::CollectSettled(const Check& check) {
  Result<store::reserve::Reservation> read = store::reserve::Read(check.settles);
  if (!read.ok()) return Error{read.error().code, "reservation: " + read.error().message};
  const Quota record = store::reserve::RecordQuota(*read);
  Reserved& reserved =
      reserved_.emplace_back(Reserved{.check = static_cast<std::size_t>(&check - checks.data()),
                                      .reservation = *std::move(read),
                                      .record = record});
  for (const store::reserve::Group& group : reserved.reservation.groups) {
    for (const store::reserve::Share& share : group.shares) {
      Item item;
      item.settles = &share;
      item.quota = &share.quota;
      item.cost = store::reserve::ChangeOf(reserved.reservation, share, check.request.cost);
      const std::size_t key_at = keys_.size();
      keys_ += share.key;
      Status kept = FinishKey(item, key_at);
      if (share.key.size() > policy::kMaxKeyBytes) {
        kept = Error{Code::kInvalidArgument, "reservation: names a key that no bucket has"};
      }
      if (!kept.ok()) {
        reserved_.pop_back();
        return kept;
      }
    }
  }
  return {};
}

/// The record comes first, as kSettle requires.
void Batch::AddRecord(Reserved& reserved, std::size_t group) {
  reserved.applications.push_back(static_cast<std::uint32_t>(applications_.size() - 1));
  layouts_.back().exact = true;
  ++layouts_.back().charges;
  reserved.keys.push_back(store::reserve::RecordKey(reserved.reservation, group));
  charges_.push_back({reserved.keys.back(), 1, &reserved.record});
  terms_.push_back(nullptr);
}

void Batch::AddSettling(Part part, const Check& check, Reserved& reserved) {
  std::uint32_t at = part.begin;
  for (std::size_t g = 0; g < reserved.reservation.groups.size(); ++g) {
    const store::reserve::Group& group = reserved.reservation.groups[g];
    const std::uint32_t end = at + static_cast<std::uint32_t>(group.shares.size());
    if (group.lease == 0) {  // not granted: there is nothing to settle
      reserved.applications.push_back(kNone);
      at = end;
      continue;
    }
    Lay(check, check.op);
    applications_.back().lease = group.lease;
    AddRecord(reserved, g);
    for (; at < end; ++at) AddCharge(items_[at]);
  }
}

void Batch::WriteReservation(std::size_t check, std::string& text) {
  Reserved* reserved = ReservedOf(check);
  if (reserved == nullptr) return;
  std::vector<store::reserve::Group>& groups = reserved->reservation.groups;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const store::Application& application = applications_[reserved->applications[g]];
    const bool granted = application.status.ok() && application.applied;
    store::reserve::Note(
        groups[g], reserved->reservation.lasts,
        granted ? std::span<const Decision>(application.decisions) : std::span<const Decision>());
  }
  text = store::reserve::Write(reserved->reservation);
}

bool Batch::Settled(std::size_t check) noexcept {
  const Reserved* reserved = ReservedOf(check);
  bool asked = false;
  for (const std::uint32_t number : reserved->applications) {
    if (number == kNone) continue;
    asked = true;
    if (applications_[number].applied) return true;
  }
  return !asked;
}

}  // namespace weir::limiter
