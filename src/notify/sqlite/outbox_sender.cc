#include "notify/sqlite/outbox_sender.h"

#include <unordered_map>
#include <utility>

#include "notify/sqlite/ledger.h"
#include "notify/sqlite/sql.h"
#include "telemetry/log.h"

namespace weir::notify::sqlite {
namespace {

using telemetry::Level;
using telemetry::Log;
using weir::sqlite::Connection;
using weir::sqlite::Database;
using weir::sqlite::Statement;

constexpr std::chrono::milliseconds kDatabasePause{500};
constexpr std::int64_t kReleaseBatch = 1000;

std::int64_t CountDead(Database& database) {
  std::int64_t count = 0;
  static_cast<void>(database.Read([&](Connection& connection) -> Status {
    const Result<std::int64_t> dead = connection.ReadNumber(kCountDead);
    if (!dead.ok()) return dead.error();
    count = *dead;
    return {};
  }));
  return count;
}

Status KeepDead(Connection& connection, const Parcel& parcel, const std::string& event,
                std::int64_t row, Micros now) {
  const std::string id =
      parcel.event.id.empty() ? "outbox-" + std::to_string(row) : parcel.event.id;
  return connection.Run(kKeepDead, event, parcel.reason, now, id, parcel.event.user_id,
                        parcel.attempts);
}

Status SetEnd(Connection& connection, const Delivery& end, Micros now) {
  return connection.Run(kSetEnd, end.event.id, end.state, end.attempts, end.error, now,
                        end.not_before);
}

}  // namespace

OutboxSender::OutboxSender(Database& database, Provider& provider, const Clock& clock,
                           std::function<void(std::size_t)> gone, SenderOptions options)
    : database_(database),
      clock_(clock),
      gone_(std::move(gone)),
      options_(options),
      courier_(provider, stats_, clock,
               {.workers = options.workers,
                .retry = options.retry,
                .may_delay = true,
                .on_failure = [this](const Delivery& failure) { NoteFailure(failure); }},
               stop_.get_token()),
      dead_(CountDead(database)) {
  thread_ = std::thread([this] { Loop(); });
}

void OutboxSender::Stop() {
  stop_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void OutboxSender::Wake() {
  {
    const std::lock_guard lock(mutex_);
    if (more_) return;
    more_ = true;
  }
  woken_.notify_one();
}

void OutboxSender::Loop() {
  const std::stop_token stop = stop_.get_token();
  while (!stop.stop_requested()) {
    while (DeliverBatch()) {
    }
    if (Status released = Release(); !released.ok() && !stop.stop_requested()) {
      Log(Level::kError, "cannot release delayed messages",
          {{"error", std::string_view(released.error().message)}});
    }
    std::unique_lock lock(mutex_);
    woken_.wait_for(lock, stop, options_.look_for_due, [this] { return more_; });
    more_ = false;
  }
}

bool OutboxSender::DeliverBatch() {
  const std::stop_token stop = stop_.get_token();
  if (stop.stop_requested()) return false;
  Result<std::vector<Row>> rows = Read();
  if (!rows.ok()) {
    Log(Level::kError, "cannot read the outbox",
        {{"error", std::string_view(rows.error().message)}});
    return notify::Sleep(kDatabasePause, stop);
  }
  if (rows->empty()) return false;
  std::vector<Parcel*> parcels;
  for (Row& row : *rows) parcels.push_back(&row.parcel);
  courier_.Deliver(parcels);
  std::erase_if(*rows, [](const Row& row) { return row.parcel.fate == Fate::kWaiting; });
  while (!rows->empty()) {
    Status removed = Remove(*rows);
    if (removed.ok()) break;
    Log(Level::kError, "cannot write the outbox",
        {{"error", std::string_view(removed.error().message)}});
    if (!notify::Sleep(kDatabasePause, stop)) return false;
  }
  return true;
}

Result<std::vector<OutboxSender::Row>> OutboxSender::Read() {
  std::vector<Row> rows;
  Status status =
      database_.Read([&](Connection& connection) { return ReadInto(connection, rows); });
  if (!status.ok()) return status.error();
  return rows;
}

Status OutboxSender::ReadInto(Connection& connection, std::vector<Row>& rows) {
  Result<Statement> query = connection.Prepare(kReadOutbox);
  if (!query.ok()) return query.error();
  Status read = query->BindAll(options_.batch).ForEach([&](const Statement& row) {
    rows.push_back({row.Int(0), std::string(row.Text(1))});
  });
  if (!read.ok()) return read;
  const Micros now = NowMicros(clock_);
  std::unordered_map<std::string, std::optional<Preferences>> wishes;
  for (Row& row : rows) {
    Result<Event> event = DecodeEvent(row.event);
    if (!event.ok()) {
      row.parcel.fate = Fate::kMalformed;
      row.parcel.reason = event.error().message;
      continue;
    }
    row.parcel.event = std::move(*event);
    const auto [known, fresh] = wishes.try_emplace(row.parcel.event.user_id);
    if (fresh) {
      Result<std::optional<Preferences>> found = ReadPreferences(connection, known->first);
      if (!found.ok()) return found.error();
      known->second = std::move(*found);
    }
    if (known->second) Respect(*known->second, now, row.parcel);
  }
  return {};
}

Status OutboxSender::Settle(Connection& connection, const Row& row, Micros now) {
  const Parcel& parcel = row.parcel;
  if (parcel.dead()) {
    if (Status s = KeepDead(connection, parcel, row.event, row.id, now); !s.ok()) return s;
  }
  if (parcel.fate == Fate::kDelayed) {
    Status s = connection.Run(kKeepDelayed, parcel.event.id, row.event, parcel.not_before);
    if (!s.ok()) return s;
  }
  if (parcel.fate != Fate::kDuplicate && parcel.fate != Fate::kMalformed) {
    if (Status s = SetEnd(connection, parcel.ToDelivery(), now); !s.ok()) return s;
  }
  return connection.Run(kDeleteEvent, row.id);
}

Status OutboxSender::Remove(const std::vector<Row>& rows) {
  const Micros now = NowMicros(clock_);
  Status status = database_.WriteAndWait([&](Connection& connection) -> Status {
    for (const Row& row : rows) {
      if (Status s = Settle(connection, row, now); !s.ok()) return s;
    }
    return {};
  });
  if (status.ok()) Note(rows);
  return status;
}

void OutboxSender::Note(const std::vector<Row>& rows) {
  std::size_t left = 0;
  for (const Row& row : rows) {
    const Parcel& parcel = row.parcel;
    if (parcel.fate != Fate::kDelayed) ++left;
    stats_.Count(ResultOf(parcel.fate));
    if (!parcel.dead()) continue;
    dead_.fetch_add(1, std::memory_order_relaxed);
    Log(Level::kError, "notification not delivered; kept as a dead letter",
        {{"eventId", std::string_view(parcel.event.id)},
         {"attempts", std::int64_t{parcel.attempts}},
         {"error", std::string_view(parcel.reason)}});
  }
  gone_(left);
}

void OutboxSender::NoteFailure(const Delivery& failure) {
  const Micros now = NowMicros(clock_);
  database_.Write(
      [failure, now](Connection& connection) { return SetEnd(connection, failure, now); },
      [](const Status&) {});
}

// Moves due events back into the outbox, after those that are there.
Status OutboxSender::Release() {
  const Micros now = NowMicros(clock_);
  for (;;) {
    bool due = false;
    Status looked = database_.Read([&](Connection& connection) -> Status {
      const Result<std::int64_t> found = connection.ReadNumber(kHasDue, now, now + kLongestDelay);
      if (!found.ok()) return found.error();
      due = *found != 0;
      return {};
    });
    if (!looked.ok() || !due) return looked;
    Status moved = database_.WriteAndWait([&](Connection& connection) -> Status {
      Status near = connection.Run(kBringNear, now, now + kLongestDelay);
      if (!near.ok()) return near;
      for (const char* sql : {kReleaseDue, kDeleteDue}) {
        if (Status s = connection.Run(sql, now, kReleaseBatch); !s.ok()) return s;
      }
      return {};
    });
    if (!moved.ok()) return moved;
    Wake();
  }
}

}  // namespace weir::notify::sqlite
