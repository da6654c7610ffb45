#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "limiter/limiter.h"
#include "policy/policy_set.h"
#include "store/reserve/reservation.h"
#include "store/store.h"

namespace weir::limiter {

/// The most policies that may apply to one check, over all its descriptors.
inline constexpr std::size_t kMaxVerdicts = 256;

/// The memory of one Decide call, from the checks to the store's answer: which policies apply,
/// under which keys, and the applications made of them. Enforced charges of a check are one
/// application, so that all or none are charged; each shadow charge is a separate one, and so is
/// each charge that its domain decides on its own.
///
/// Not thread-safe. Reused, so that nothing is allocated once it has grown.
class Batch {
 public:
  /// A policy (or a quota that came with the request) that applies to a descriptor.
  struct Item {
    const policy::Policy* policy = nullptr;          ///< null: the quota came with the request
    const Quota* quota = nullptr;                    ///< null: unlimited
    const algorithm::LeaseTerms* lease = nullptr;    ///< null: charged exactly
    const store::reserve::Share* settles = nullptr;  ///< null: does not settle a reservation
    std::uint32_t descriptor = 0;
    std::uint32_t key_at = 0;
    std::uint32_t key_size = 0;
    std::int64_t cost = 0;
    bool alone = false;          ///< decided separately from the others of its check
    bool always_counts = false;  ///< charged whether it fits or not; then also alone
    /// The item of the same check with the same bucket, which is charged for both; else itself.
    std::uint32_t charged_as = 0;
    std::uint32_t application = kNone;
    std::uint32_t position = 0;  ///< within the application

    bool shadow() const noexcept {
      return settles != nullptr ? settles->shadow : policy != nullptr && policy->definition.shadow;
    }
    /// All or none of these are charged.
    bool together() const noexcept { return quota != nullptr && !shadow() && !alone; }
  };

  /// A check's part of `items`.
  struct Part {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
  };

  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  /// Finds what applies to each check and builds the applications. A check that cannot be decided
  /// gets its status, and no items.
  void Build(std::shared_ptr<const std::shared_ptr<const policy::PolicySet>> policies,
             std::span<Check> checks);

  /// Releases the policies, which may be outdated before the next Build.
  void Forget() noexcept { policies_.reset(); }

  std::span<store::Application> applications() noexcept { return applications_; }
  /// Fails the applications that charge a policy which this process cannot charge, and returns the
  /// others, for the store. Requires that TakeAnswers is called once they are answered.
  std::span<store::Application> WithoutUnable();
  /// Takes the store's answers to what WithoutUnable returned.
  void TakeAnswers();
  std::span<const Item> ItemsOf(std::size_t check) const noexcept {
    return std::span(items_).subspan(parts_[check].begin, parts_[check].end - parts_[check].begin);
  }
  const Item& charged(const Item& item) const noexcept { return items_[item.charged_as]; }
  std::string_view KeyOf(const Item& item) const noexcept {
    return std::string_view(keys_).substr(item.key_at, item.key_size);
  }

  /// Writes the text that settles the charges later, if a check reserves and is granted. Requires
  /// that the store has answered.
  void WriteReservation(std::size_t check, std::string& text);
  /// Whether a check that settles has done so: some record was still there, or nothing had to be
  /// sent. Requires that the store has decided all of it.
  bool Settled(std::size_t check) noexcept;

  std::span<Check> checks;
  store::Done done;
  Nanos asked_at = 0;        ///< when Decide was called; set only if decisions are traced
  Nanos store_asked_at = 0;  ///< when the store was called; 0: it was not

 private:
  struct Layout {
    std::uint32_t first_charge;
    std::uint32_t charges;
    bool exact = false;  ///< never decided from permits held here
  };
  /// The reservation of a check that reserves or settles.
  struct Reserved {
    std::size_t check = 0;
    store::reserve::Reservation reservation;
    Quota record;
    std::vector<std::string> keys = {};            // of the records
    std::vector<std::uint32_t> applications = {};  // of the groups; kNone: nothing is sent
  };

  /// Whose items with the same bucket are charged once: those of the request, of each descriptor,
  /// or none.
  enum class Sharing { kRequest, kDescriptor, kNone };

  Status Collect(const policy::PolicySet& set, const policy::Request& request);
  Status CollectDescriptor(const policy::PolicySet& set, const policy::Request& request,
                           std::size_t index);
  // Bare keys: batch_keys.cc.
  Status CollectKey(const policy::PolicySet& set, const policy::Request& request);
  Status CollectSubjects(const policy::PolicySet& set, const policy::Request& request);
  Status AddBareKey(const policy::Policy& policy, std::string_view key, std::int64_t cost);
  void DropGeneral(std::string_view entry);
  static std::int64_t CostOf(std::int64_t asked, std::int64_t factor) noexcept;
  void SetMode(Item& item, bool reported = false) const noexcept;
  Status FinishKey(Item item, std::size_t key_at);
  void DropReplaced();
  void ShareBuckets(Part part, Sharing sharing);
  void AddApplications(Part part, const Check& check);
  void AddReleases(Part part, const Check& check);
  Item* FirstConcurrency(Part part, bool shadow) noexcept;
  Status CollectSettled(const Check& check);
  Status MakeRecords(Part part, std::size_t check);
  void AddSettling(Part part, const Check& check, Reserved& reserved);
  void AddRecord(Reserved& reserved, std::size_t group);
  Reserved* ReservedOf(std::size_t check) noexcept;
  void AddCharge(Item& item);
  void Lay(const Check& check, store::Op op);

  // Keeps the policies alive while views of their names are out. The outer pointer's count belongs
  // to this thread, the inner one's is shared by all and not touched per check.
  std::shared_ptr<const std::shared_ptr<const policy::PolicySet>> policies_;
  policy::MatchBuffer match_;
  std::string keys_;
  std::vector<Item> items_;
  std::size_t check_begin_ = 0;  // of the check that is being collected, in items_
  bool gives_back_ = false;      // for that check
  std::vector<Part> parts_;
  std::vector<store::Charge> charges_;
  std::vector<const algorithm::LeaseTerms*> terms_;  // of each charge
  bool any_leased_ = false;
  std::vector<Decision> decisions_;
  std::vector<store::Application> applications_;
  std::vector<store::Application> asked_;     // the remaining ones, if any fails beforehand
  std::vector<std::uint32_t> asked_indices_;  // of these, in applications_
  std::vector<Nanos> stamps_;                 // of each charge, if anything is settled
  std::vector<Layout> layouts_;
  std::deque<Reserved> reserved_;  // of the checks that reserve or settle, in order
};

}  // namespace weir::limiter
