#include "store/sql/batch.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "algorithm/lease.h"
#include "algorithm/settle.h"
#include "algorithm/state.h"

namespace weir::store::sql {
namespace {

algorithm::State View(RowState::Bytes& bytes, std::size_t size) {
  return {bytes.data(), static_cast<std::uint32_t>(size), static_cast<std::uint32_t>(bytes.size())};
}

// A step that needs no more room than the state has.
template <typename Step>
auto RunStep(RowState::Bytes& bytes, Step step) {
  algorithm::State state = View(bytes, bytes.size());
  auto result = step(state);
  bytes.resize(state.size);
  return result;
}

}  // namespace

template <typename Body>
auto Batch::RunGrowing(const ItemCharge& charge, Body body) {
  RowState::Bytes& bytes = StateOf(charge);
  const std::size_t size = bytes.size();
  const std::uint32_t needed = algorithm::CapacityForReserve(charge.quota, View(bytes, size));
  bytes.resize(std::max<std::size_t>(size, needed));
  algorithm::State state = View(bytes, size);
  auto result = body(state);
  bytes.resize(state.size);
  return result;
}

Batch::Batch(std::vector<Waiting> items) : items_(std::move(items)) {
  std::unordered_map<std::string_view, std::uint32_t> numbers;
  for (const Waiting& waiting : items_) {
    for (ItemCharge& charge : waiting.item->charges) {
      const auto [found, is_new] =
          numbers.try_emplace(charge.key, static_cast<std::uint32_t>(rows_.size()));
      charge.row = found->second;
      const Op op = waiting.item->op;
      const bool charged = op == Op::kCharge || op == Op::kLease ||
                           ((op == Op::kOverdraw || op == Op::kSettle) && charge.cost > 0);
      if (!is_new) {
        rows_[charge.row].charged |= charged;
        continue;
      }
      Row row;
      row.charged = charged;
      row.id = RowId(charge.key);
      row.key = charge.key;
      rows_.push_back(std::move(row));
    }
  }
  std::vector<std::uint32_t> order(rows_.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [this](std::uint32_t i) { return std::string_view(rows_[i].id); });
  std::vector<std::uint32_t> place(rows_.size());
  std::vector<Row> sorted;
  sorted.reserve(rows_.size());
  for (const std::uint32_t i : order) {
    place[i] = static_cast<std::uint32_t>(sorted.size());
    sorted.push_back(std::move(rows_[i]));
  }
  rows_ = std::move(sorted);
  for (const Waiting& waiting : items_) {
    for (ItemCharge& charge : waiting.item->charges) charge.row = place[charge.row];
  }
}

void Batch::Restart() {
  for (Row& row : rows_) row.loaded = row.absent = false;
  loaded_ = 0;
  writes_.clear();
}

bool Batch::Load(std::string_view id, std::string_view bytes) {
  const auto row = std::ranges::lower_bound(
      rows_, id, {}, [](const Row& candidate) { return std::string_view(candidate.id); });
  if (row == rows_.end() || row->id != id) return false;
  Result<RowState> state = RowState::Parse(row->key, bytes);
  row->bytes = bytes;
  row->status = state.ok() ? Status() : Status(state.error());
  row->state = state.ok() ? std::move(*state) : RowState();
  loaded_ += row->loaded ? 0 : 1;
  row->loaded = true;
  return true;
}

bool Batch::FinishLoading() {
  for (Row& row : rows_) {
    if (row.loaded || row.charged) continue;
    row.bytes.clear();
    row.state = RowState();
    row.status = {};
    row.loaded = row.absent = true;
    ++loaded_;
  }
  return loaded_ == rows_.size();
}

void Batch::Run(Nanos now) {
  for (const Waiting& waiting : items_) RunItem(*waiting.item, now);
  for (const Row& row : rows_) {
    if (!row.status.ok() || row.absent) continue;
    std::string after = row.state.Encode(row.key);
    if (after != row.bytes) writes_.push_back({row.id, std::move(after), row.state.FreshAt()});
  }
}

void Batch::RunItem(Item& item, Nanos now) {
  item.status = {};
  item.applied = true;
  if (item.op != Op::kReset) {
    for (const ItemCharge& charge : item.charges) {
      if (rows_[charge.row].status.ok()) continue;
      item.status = rows_[charge.row].status;
      item.applied = false;
      return;
    }
  }
  if (item.op == Op::kCharge) return ChargeAll(item, now);
  if (item.op == Op::kLease) return Lease(item, now);
  if (item.op == Op::kSettle) return Settle(item, now);
  if (item.op == Op::kRelease) item.applied = false;
  for (std::size_t i = 0; i < item.charges.size(); ++i) {
    const ItemCharge& charge = item.charges[i];
    switch (item.op) {
      case Op::kCharge:
      case Op::kLease:
      case Op::kSettle:
        break;
      case Op::kReturn:
        item.decisions[i] = RunStep(StateOf(charge), [&](algorithm::State& state) {
          return algorithm::Return(charge.quota, state, now, item.lease, charge.cost);
        });
        break;
      case Op::kPeek:
        item.decisions[i] = Peek(charge, now, charge.cost);
        break;
      case Op::kRefund:
        item.decisions[i] = RunStep(StateOf(charge), [&](algorithm::State& state) {
          return algorithm::Refund(charge.quota, state, now, charge.cost);
        });
        break;
      case Op::kOverdraw:
        item.decisions[i] = RunGrowing(charge, [&](algorithm::State& state) {
          return algorithm::Overdraw(charge.quota, state, now, charge.cost);
        });
        break;
      case Op::kRelease:
        item.applied |= RunStep(StateOf(charge), [&](algorithm::State& state) {
          return algorithm::Release(charge.quota, state, now, item.lease);
        });
        item.decisions[i] = Peek(charge, now, 0);
        break;
      case Op::kReset:
        rows_[charge.row].state.Clear();
        // Whatever the row held, it is valid again.
        rows_[charge.row].status = {};
        item.decisions[i] = Peek(charge, now, 0);
        break;
    }
  }
}

void Batch::ChargeAll(Item& item, Nanos now) {
  item.at = now;
  const bool alone = item.charges.size() == 1;  // a refused step changes nothing by itself
  before_.clear();
  for (std::size_t i = 0; i < item.charges.size(); ++i) {
    const ItemCharge& charge = item.charges[i];
    RowState::Bytes& state = StateOf(charge);
    if (!alone) before_.push_back({&state, state});
    item.decisions[i] = Acquire(charge, now, item.reserved);
    item.applied = item.applied && item.decisions[i].allowed();
  }
  if (item.applied) return;
  for (auto before = before_.rbegin(); before != before_.rend(); ++before) {
    *before->state = std::move(before->bytes);
  }
}

void Batch::Lease(Item& item, Nanos now) {
  const ItemCharge& charge = item.charges.front();
  const LeaseGrant grant = RunGrowing(charge, [&](algorithm::State& state) {
    return algorithm::Lease(charge.quota, state, now, charge.cost);
  });
  item.decisions.front() = grant.decision;
  item.granted = grant.granted;
  item.at = grant.at;
  item.applied = grant.granted > 0;
}

/// Only once: it removes the record in the first charge.
void Batch::Settle(Item& item, Nanos now) {
  const ItemCharge& record = item.charges.front();
  item.applied = RunStep(StateOf(record), [&](algorithm::State& state) {
    return algorithm::Release(record.quota, state, now, item.lease);
  });
  item.decisions.front() = Peek(record, now, 0);
  for (std::size_t i = 1; i < item.charges.size(); ++i) {
    const ItemCharge& charge = item.charges[i];
    item.decisions[i] = RunGrowing(charge, [&](algorithm::State& state) {
      return item.applied ? algorithm::Settle(charge.quota, state, now, charge.stamp, charge.cost)
                          : algorithm::Overdraw(charge.quota, state, now, 0);
    });
  }
}

Decision Batch::Acquire(const ItemCharge& charge, Nanos now, Nanos reserved) {
  return RunGrowing(charge, [&](algorithm::State& state) {
    return reserved > 0 ? algorithm::Reserve(charge.quota, state, now, charge.cost, reserved)
                        : algorithm::Acquire(charge.quota, state, now, charge.cost);
  });
}

Decision Batch::Peek(const ItemCharge& charge, Nanos now, std::int64_t cost) {
  RowState::Bytes& bytes = StateOf(charge);
  return algorithm::Peek(charge.quota, View(bytes, bytes.size()), now, cost);
}

RowState::Bytes& Batch::StateOf(const ItemCharge& charge) {
  return rows_[charge.row].state[charge.quota.algorithm()];
}

}  // namespace weir::store::sql
