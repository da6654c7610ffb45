#include "slots/sqlite/window_table.h"

#include "slots/sqlite/sql.h"

namespace weir::slots::sqlite {

using weir::sqlite::Statement;

Result<std::int64_t> SqliteWindowTable::UsedByClass(Millis window) {
  if (class_.empty()) return 0;
  Result<Statement> query = connection_.Prepare(kUsedByClass);
  if (!query.ok()) return query.error();
  query->Bind(1, config_id_).Bind(2, size_).Bind(3, class_).Bind(4, window);
  Result<bool> row = query->Step();
  if (!row.ok()) return row.error();
  return *row ? query->Int(0) : 0;
}

Result<std::optional<WindowRoom>> SqliteWindowTable::Find(Millis start) {
  Result<Statement> query = connection_.Prepare(kFindWindow);
  if (!query.ok()) return query.error();
  query->Bind(1, config_id_).Bind(2, size_).Bind(3, start);
  Result<bool> row = query->Step();
  if (!row.ok()) return row.error();
  if (!*row) return std::optional<WindowRoom>();
  Result<std::int64_t> of_class = UsedByClass(start);
  if (!of_class.ok()) return of_class.error();
  return std::optional<WindowRoom>(WindowRoom{start, query->Int(0), *of_class, query->Int(1) != 0});
}

Result<std::vector<WindowRoom>> SqliteWindowTable::ListOpen(Millis from, std::size_t limit) {
  Result<Statement> query = connection_.Prepare(kListOpen);
  if (!query.ok()) return query.error();
  query->Bind(1, config_id_).Bind(2, size_).Bind(3, from);
  query->Bind(4, static_cast<std::int64_t>(limit));
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

Status SqliteWindowTable::Create(Millis from, std::size_t count) {
  Result<Statement> insert = connection_.Prepare(kCreateWindow);
  if (!insert.ok()) return insert.error();
  insert->Bind(1, config_id_).Bind(2, size_);
  for (std::size_t i = 0; i < count; ++i) {
    insert->Bind(3, from + static_cast<Millis>(i) * size_);
    if (Status s = insert->Run(); !s.ok()) return s;
  }
  return {};
}

Status SqliteWindowTable::Take(std::span<const Taken> taken) {
  for (const Taken& one : taken) {
    if (Status s = TakeOne(one); !s.ok()) return s;
  }
  return {};
}

Status SqliteWindowTable::TakeOne(const Taken& taken) {
  Result<Statement> update = connection_.Prepare(kTakeInWindow);
  if (!update.ok()) return update.error();
  update->Bind(1, config_id_).Bind(2, size_).Bind(3, taken.window).Bind(4, taken.count);
  update->Bind(5, max_);
  Result<bool> row = update->Step();
  if (!row.ok()) return row.error();
  if (!*row) return Error{Code::kInternal, "slots: a window lost its row"};
  const bool closed = update->Int(0) != 0;
  if (Status s = update->Run(); !s.ok()) return s;
  if (closed) {
    if (Status s = Create(taken.window + size_, 1); !s.ok()) return s;
  }
  if (class_.empty()) return {};
  Result<Statement> upsert = connection_.Prepare(kTakeInClass);
  if (!upsert.ok()) return upsert.error();
  upsert->Bind(1, config_id_).Bind(2, size_).Bind(3, class_).Bind(4, taken.window);
  return upsert->Bind(5, taken.count).Run();
}

Status SqliteWindowTable::GiveBack(Millis window) {
  Result<Statement> update = connection_.Prepare(kGiveBackWindow);
  if (!update.ok()) return update.error();
  update->Bind(1, config_id_).Bind(2, size_).Bind(3, window).Bind(4, max_);
  if (Status s = update->Run(); !s.ok()) return s;
  Result<Statement> tenant = connection_.Prepare(kGiveBackClass);
  if (!tenant.ok()) return tenant.error();
  tenant->Bind(1, config_id_).Bind(2, size_).Bind(3, class_).Bind(4, window);
  return tenant->Run();
}

}  // namespace weir::slots::sqlite
