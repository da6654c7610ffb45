#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "store/store.h"

namespace weir::store::redis {

/// An application whose keys lie in several slots of a cluster, which no single script can decide.
/// It is charged slot by slot; if one of them refuses, the earlier charges are returned, as leases
/// are (algorithm/lease.h), before the caller is answered. So nothing is admitted that one server
/// would refuse, and a refused caller has been charged nothing. Unlike on one server, while it runs
/// another check may be refused because of permits that are about to be returned; and a node that
/// dies in between leaves them charged.
///
/// Thread safety: as the store's.
class Crossing : public std::enable_shared_from_this<Crossing> {
 public:
  /// Decides applications whose keys are in one slot each.
  using Apply = std::function<void(std::span<Application>, Done)>;

  /// Whether it can be decided this way: not a reservation, which is settled in one step.
  static bool Can(const Application& whole) noexcept;

  /// `groups`: positions of the charges of each slot. Fills `whole` and calls `done` once.
  static void Run(Application& whole, const std::vector<std::vector<std::uint32_t>>& groups,
                  Apply apply, Done done);

 private:
  /// The charges of one slot.
  struct Part {
    std::vector<std::uint32_t> positions;
    std::vector<Charge> charges;
    std::vector<Decision> decisions;
    Nanos at = 0;  // when it was charged
  };

  Crossing(Application& whole, Apply apply, Done done);
  void ChargeNext();
  void OnCharged();
  void GiveBack();
  void AddLooks(std::size_t first, Op op);
  void AskAll();
  void Finish();

  Application& whole_;
  const Op op_;
  const Apply apply_;
  const Done done_;
  std::vector<Part> parts_;
  std::size_t next_ = 0;
  std::vector<Application> asked_;
};

}  // namespace weir::store::redis
