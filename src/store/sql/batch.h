#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algorithm/state.h"
#include "store/sql/row.h"
#include "store/sql/submission.h"
#include "weir/clock.h"

namespace weir::store::sql {

/// An application that waits, and the call that it belongs to.
struct Waiting {
  std::shared_ptr<Submission> owner;
  Item* item = nullptr;
};

/// The work of one transaction: a backend creates the charged rows if need be, locks and reads
/// rows() in order, loads each, runs the steps at the time it read under the locks, writes writes()
/// and commits. It may start over if the transaction was rolled back. Operations that only read or
/// return permits create no rows: a missing row counts as fresh and stays missing.
///
/// Thread safety: belongs to the lane that took it.
class Batch {
 public:
  struct Row {
    std::string id;
    std::string_view key;
    std::string bytes;  ///< as read
    RowState state;
    Status status;  ///< why the bytes cannot be used
    bool loaded = false;
    bool charged = false;  ///< some application charges it, so it must exist and be locked
    bool absent = false;   ///< it does not exist, and need not
  };
  struct Write {
    std::string_view id;
    std::string state;
    Nanos fresh_at = 0;
  };

  explicit Batch(std::vector<Waiting> items);

  /// Distinct, in the order of their ids, which is the order to lock them in.
  std::span<const Row> rows() const noexcept { return rows_; }
  std::span<const Waiting> items() const noexcept { return items_; }

  /// Forgets what was loaded.
  void Restart();
  /// Stores what a row holds. False if `id` is not one of rows().
  bool Load(std::string_view id, std::string_view bytes);
  /// All existing rows have been loaded: treats missing rows that are not charged as fresh. False
  /// if a row that is charged is missing.
  bool FinishLoading();

  /// Runs all applications in order. Requires FinishLoading().
  void Run(Nanos now);
  /// The rows that have changed, in order.
  std::span<const Write> writes() const noexcept { return writes_; }

 private:
  void RunItem(Item& item, Nanos now);
  void ChargeAll(Item& item, Nanos now);
  void Lease(Item& item, Nanos now);
  void Settle(Item& item, Nanos now);
  Decision Acquire(const ItemCharge& charge, Nanos now, Nanos reserved);
  /// A step that may make the state longer.
  template <typename Body>
  auto RunGrowing(const ItemCharge& charge, Body body);
  Decision Peek(const ItemCharge& charge, Nanos now, std::int64_t cost);
  RowState::Bytes& StateOf(const ItemCharge& charge);

  struct Before {
    RowState::Bytes* state;
    RowState::Bytes bytes;
  };

  std::vector<Waiting> items_;
  std::vector<Row> rows_;
  std::vector<Write> writes_;
  std::vector<Before> before_;
  std::size_t loaded_ = 0;
};

}  // namespace weir::store::sql
