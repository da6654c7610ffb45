#pragma once

namespace weir::store::lease {

/// Ways to break the protocol on purpose, to show that a simulation finds it. Never set otherwise.
struct Flaws {
  bool from_receipt = false;     ///< counts a lease from when its grant arrived
  bool after_term = false;       ///< spends permits after their term
  bool past_window = false;      ///< spends permits after the window they were charged in
  bool refund_in_store = false;  ///< lets a client's refund free permits that others hold
  bool region_outlived = false;  ///< lends permits that end before the node's lease does
  bool full_share = false;       ///< starts a share of a rate with a full bucket
  bool share_outlived = false;   ///< refills after a share has ended
  bool late_share = false;       ///< counts a share from when its grant arrived
  bool permit_outlived = false;  ///< hands out permits of a concurrency quota after their term
  bool permit_kept = false;      ///< hands out permits that it has returned
};

}  // namespace weir::store::lease
