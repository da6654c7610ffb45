#include "slots/sqlite/window_table.h"

#include "slots/sqlite/sql.h"

namespace weir::slots::sqlite {

using weir::sqlite::Statement;

Result<std::int64_t> WindowTable::UsedByClass(Millis window) {
  if (class_.empty()) return 0;
  return connection_.ReadNumber(kUsedByClass, config_id_, size_, class_, window);
}

Result<std::optional<WindowRoom>> WindowTable::Find(Millis start) {
  Result<Statement> query = connection_.Prepare(kFindWindow);
  if (!query.ok()) return query.error();
  Result<bool> row = query->BindAll(config_id_, size_, start).Step();
  if (!row.ok()) return row.error();
  if (!*row) return std::optional<WindowRoom>();
  Result<std::int64_t> of_class = UsedByClass(start);
  if (!of_class.ok()) return of_class.error();
  return std::optional<WindowRoom>(WindowRoom{start, query->Int(0), *of_class, query->Int(1) != 0});
}

Result<std::vector<WindowRoom>> WindowTable::ListOpen(Millis from, std::size_t limit) {
  Result<Statement> query = connection_.Prepare(kListOpen);
  if (!query.ok()) return query.error();
  query->BindAll(config_id_, size_, from, limit);
  std::vector<WindowRoom> open;
  for (;;) {
    Result<bool> row = query->Step();
    if (!row.ok()) return row.error();
    if (!*row) return open;
    Result<std::int64_t> of_class = UsedByClass(query->Int(0));
    if (!of_class.ok()) return of_class.error();
    open.push_back({query->Int(0), query->Int(1), *of_class, true});
    if (query->Int(2) == 0) return open;
  }
}

Status WindowTable::Create(Millis from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const Millis start = from + static_cast<Millis>(i) * size_;
    if (Status s = connection_.Run(kCreateWindow, config_id_, size_, start); !s.ok()) return s;
  }
  return {};
}

Status WindowTable::Take(std::span<const Taken> taken) {
  for (const Taken& one : taken) {
    if (Status s = TakeOne(one); !s.ok()) return s;
  }
  return {};
}

Status WindowTable::TakeOne(const Taken& taken) {
  Result<Statement> update = connection_.Prepare(kTakeInWindow);
  if (!update.ok()) return update.error();
  update->BindAll(config_id_, size_, taken.window, taken.count, max_);
  Result<bool> row = update->Step();
  if (!row.ok()) return row.error();
  if (!*row) return Error{Code::kInternal, "slots: a window lost its row"};
  const bool closed = update->Int(0) != 0;
  if (Status s = update->Run(); !s.ok()) return s;
  if (closed) {
    if (Status s = Create(taken.window + size_, 1); !s.ok()) return s;
  }
  if (class_.empty()) return {};
  return connection_.Run(kTakeInClass, config_id_, size_, class_, taken.window, taken.count);
}

Status WindowTable::GiveBack(Millis window) {
  Status s = connection_.Run(kGiveBackWindow, config_id_, size_, window, max_);
  if (!s.ok()) return s;
  return connection_.Run(kGiveBackClass, config_id_, size_, class_, window);
}

}  // namespace weir::slots::sqlite
