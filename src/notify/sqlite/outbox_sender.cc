#include "notify/sqlite/outbox_sender.h"

#include <algorithm>
#include <utility>

#include "telemetry/log.h"

namespace weir::notify::sqlite {
namespace {

using telemetry::Level;
using telemetry::Log;
using weir::sqlite::Connection;
using weir::sqlite::Database;
using weir::sqlite::Statement;

constexpr std::chrono::milliseconds kDatabasePause{500};

bool MayHelpToRepeat(const Error& error) {
  return error.code == Code::kUnavailable || error.code == Code::kDeadlineExceeded;
}

std::uint64_t CountDead(Database& database) {
  std::uint64_t count = 0;
  static_cast<void>(database.Read([&](Connection& connection) -> Status {
    Result<Statement> query = connection.Prepare("SELECT count(*) FROM notify_dead_letter");
    if (!query.ok()) return query.error();
    Result<bool> row = query->Step();
    if (!row.ok()) return row.error();
    count = static_cast<std::uint64_t>(query->Int(0));
    return {};
  }));
  return count;
}

}  // namespace

OutboxSender::OutboxSender(Database& database, Provider& provider, const Clock& clock,
                           std::function<void(std::size_t)> gone, SenderOptions options)
    : database_(database),
      provider_(provider),
      clock_(clock),
      gone_(std::move(gone)),
      options_(options),
      dead_(CountDead(database)) {
  thread_ = std::thread([this] { Loop(); });
}

OutboxSender::~OutboxSender() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  woken_.notify_all();
  thread_.join();
}

void OutboxSender::Wake() {
  {
    const std::lock_guard lock(mutex_);
    if (more_) return;
    more_ = true;
  }
  woken_.notify_one();
}

bool OutboxSender::Sleep(std::chrono::milliseconds pause) {
  std::unique_lock lock(mutex_);
  return !woken_.wait_for(lock, pause, [this] { return stopping_; });
}

void OutboxSender::Loop() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      woken_.wait(lock, [this] { return more_ || stopping_; });
      if (stopping_) return;
      more_ = false;
    }
    for (;;) {
      Result<std::vector<Row>> rows = Read();
      if (!rows.ok()) {
        Log(Level::kError, "outbox cannot be read",
            {{"error", std::string_view(rows.error().message)}});
        if (!Sleep(kDatabasePause)) return;
        continue;
      }
      if (rows->empty()) break;
      std::size_t done = 0;
      while (done < rows->size() && Deliver((*rows)[done])) ++done;
      const bool stopped = done < rows->size();
      rows->resize(done);
      while (!rows->empty()) {
        Status removed = Remove(*rows);
        if (removed.ok()) break;
        Log(Level::kError, "outbox cannot be written",
            {{"error", std::string_view(removed.error().message)}});
        if (!Sleep(kDatabasePause)) return;
      }
      if (stopped) return;
    }
  }
}

Result<std::vector<OutboxSender::Row>> OutboxSender::Read() {
  std::vector<Row> rows;
  Status status = database_.Read([&](Connection& connection) -> Status {
    Result<Statement> query =
        connection.Prepare("SELECT id, event FROM notify_outbox ORDER BY id LIMIT ?1");
    if (!query.ok()) return query.error();
    query->Bind(1, static_cast<std::int64_t>(options_.batch));
    for (;;) {
      Result<bool> row = query->Step();
      if (!row.ok()) return row.error();
      if (!*row) return {};
      rows.push_back({query->Int(0), std::string(query->Text(1))});
    }
  });
  if (!status.ok()) return status.error();
  return rows;
}

bool OutboxSender::Deliver(Row& row) {
  Result<Event> event = DecodeEvent(row.event);
  if (!event.ok()) {
    row.error = event.error().message;
    return true;
  }
  std::chrono::milliseconds pause = options_.first_pause;
  for (int attempt = 1;; ++attempt) {
    Status status = provider_.Deliver(*event);
    if (status.ok()) return true;
    row.error = status.error().message;
    if (attempt >= options_.max_attempts || !MayHelpToRepeat(status.error())) return true;
    if (!Sleep(pause)) return false;
    row.error.clear();
    pause = std::min(pause * 2, options_.longest_pause);
  }
}

Status OutboxSender::Remove(const std::vector<Row>& rows) {
  const Micros now = NowMicros(clock_);
  // The whole range at once: ids between ours are none but ours, since we read in order.
  Status status = database_.WriteAndWait([&](Connection& connection) -> Status {
    Result<Statement> keep = connection.Prepare(
        "INSERT INTO notify_dead_letter(event, error, failed_at) VALUES (?1, ?2, ?3)");
    if (!keep.ok()) return keep.error();
    for (const Row& row : rows) {
      if (row.error.empty()) continue;
      Status s = keep->Bind(1, row.event).Bind(2, row.error).Bind(3, now).Run();
      if (!s.ok()) return s;
    }
    Result<Statement> remove =
        connection.Prepare("DELETE FROM notify_outbox WHERE id BETWEEN ?1 AND ?2");
    if (!remove.ok()) return remove.error();
    return remove->Bind(1, rows.front().id).Bind(2, rows.back().id).Run();
  });
  if (!status.ok()) return status;
  std::uint64_t dead = 0;
  for (const Row& row : rows) {
    if (row.error.empty()) continue;
    ++dead;
    Log(Level::kError, "notification not delivered; kept as a dead letter",
        {{"event", std::string_view(row.event)}, {"error", std::string_view(row.error)}});
  }
  dead_.fetch_add(dead, std::memory_order_relaxed);
  delivered_.fetch_add(rows.size() - dead, std::memory_order_relaxed);
  gone_(rows.size());
  return {};
}

}  // namespace weir::notify::sqlite
