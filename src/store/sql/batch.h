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

/// An application that waits, and the call that it came with.
struct Waiting {
  std::shared_ptr<Submission> owner;
  Item* item = nullptr;
};

/// The work of one transaction: a backend makes the rows that are charged if need be, locks and
/// reads rows() in order, loads each, runs the steps at the time it read under the locks, writes
/// writes() and commits. It may do so again from the start if the transaction was undone. Whoever
/// only looks, or gives back, makes no rows: what is not there is fresh, and stays so.
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
    bool charged = false;  ///< some application charges it, so it must be there and locked
    bool absent = false;   ///< it is not there, and need not be
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
  /// Takes over what a row holds. False if `id` is not one of rows().
  bool Load(std::string_view id, std::string_view bytes);
  /// Everything that is there has been loaded: takes what is not, and need not be, for fresh. False
  /// if a row is missing that is charged.
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
