#include "notify/sqlite/ledger.h"

#include <optional>
#include <utility>

#include "drivers/sqlite/valued.h"
#include "notify/event.h"
#include "notify/sqlite/away.h"
#include "notify/sqlite/sql.h"

namespace weir::notify::sqlite {
namespace {

using weir::sqlite::Connection;
using weir::sqlite::Statement;

/// The rows of a statement that is bound.
template <typename T, typename ReadRow>
Result<std::vector<T>> ReadAll(Statement& query, ReadRow read) {
  std::vector<T> rows;
  for (;;) {
    Result<bool> more = query.Step();
    if (!more.ok()) return more.error();
    if (!*more) return rows;
    rows.push_back(read(query));
  }
}

template <typename T>
Result<std::optional<T>> First(Result<std::vector<T>> rows) {
  if (!rows.ok()) return rows.error();
  if (rows->empty()) return std::optional<T>();
  return std::optional<T>(std::move(rows->front()));
}

Message ReadMessage(const Statement& row) {
  const auto text = [&](int column) { return std::string(row.Text(column)); };
  return {.accepted = {text(0), text(1), text(2), text(3), row.Int(7)},
          .state = static_cast<MessageState>(row.Int(4)),
          .attempts = row.Int(5),
          .last_error = text(6),
          .updated_at = row.Int(8),
          .not_before = row.Int(9)};
}

DeadMessage ReadDead(const Statement& row) {
  const auto text = [&](int column) { return std::string(row.Text(column)); };
  return {text(0), text(1), text(2), text(3), row.Int(4), row.Int(5)};
}

/// Takes dead letters out; those that it took, with their events.
Result<std::vector<DeadMessage>> TakeDead(Connection& connection,
                                          const std::vector<std::string>& ids) {
  std::vector<DeadMessage> taken;
  Result<Statement> find = connection.Prepare(std::string(kSelectDead) + " event_id = ?1");
  if (!find.ok()) return find.error();
  Result<Statement> remove = connection.Prepare(kDeleteDead);
  if (!remove.ok()) return remove.error();
  for (const std::string& id : ids) {
    find->Bind(1, id);
    Result<std::optional<DeadMessage>> dead = First(ReadAll<DeadMessage>(*find, ReadDead));
    if (!dead.ok()) return dead.error();
    find->Reset();
    if (!dead->has_value()) continue;
    if (Status s = remove->Bind(1, id).Run(); !s.ok()) return s.error();
    taken.push_back(std::move(**dead));
  }
  return taken;
}

Status SetState(Connection& connection, const std::string& id, MessageState state,
                std::string_view error, Micros now) {
  Result<Statement> set = connection.Prepare(kRequeueMessage);
  if (!set.ok()) return set.error();
  set->Bind(1, id).Bind(2, static_cast<std::int64_t>(state)).Bind(3, error).Bind(4, now);
  return set->Run();
}

std::vector<std::string> IdsOf(const std::vector<DeadMessage>& letters) {
  std::vector<std::string> ids;
  ids.reserve(letters.size());
  for (const DeadMessage& letter : letters) ids.push_back(letter.event_id);
  return ids;
}

}  // namespace

Result<std::optional<Preferences>> ReadPreferences(Connection& connection,
                                                   const std::string& user_id) {
  Result<Statement> query = connection.Prepare(kReadPreferences);
  if (!query.ok()) return query.error();
  query->Bind(1, user_id);
  return First(ReadAll<Preferences>(*query, [&](const Statement& row) {
    Preferences found{.user_id = user_id, .opted_out = SplitChannels(row.Text(3))};
    if (row.Int(0) != row.Int(1)) {
      found.quiet = QuietHours{static_cast<int>(row.Int(0)), static_cast<int>(row.Int(1)),
                               std::string(row.Text(2))};
    }
    return found;
  }));
}

template <typename T, typename Work>
void SqliteLedger::Read(Work work, Done<T> done) {
  weir::sqlite::ReadFor<T>(database_, OrAway(std::move(done)), std::move(work));
}

template <typename T, typename Work>
void SqliteLedger::Write(Work work, Done<T> done) {
  weir::sqlite::WriteFor<T>(database_, OrAway(std::move(done)), std::move(work));
}

void SqliteLedger::Find(std::string event_id, Done<std::optional<Message>> done) {
  Read<std::optional<Message>>(
      [id = std::move(event_id)](Connection& connection) -> Result<std::optional<Message>> {
        Result<Statement> query =
            connection.Prepare(std::string(kSelectMessage) + " event_id = ?1");
        if (!query.ok()) return query.error();
        query->Bind(1, id);
        return First(ReadAll<Message>(*query, ReadMessage));
      },
      std::move(done));
}

void SqliteLedger::List(MessageQuery query, Done<std::vector<Message>> done) {
  Read<std::vector<Message>>(
      [query = std::move(query)](Connection& connection) -> Result<std::vector<Message>> {
        std::string sql = std::string(kSelectMessage) + " (accepted_at, event_id) < (?3, ?4)";
        if (!query.user_id.empty()) sql += " AND user_id = ?1";
        if (query.state) sql += query.user_id.empty() ? " AND state = ?2" : " AND +state = ?2";
        sql += " ORDER BY accepted_at DESC, event_id DESC LIMIT ?5";
        Result<Statement> select = connection.Prepare(sql);
        if (!select.ok()) return select.error();
        if (!query.user_id.empty()) select->Bind(1, query.user_id);
        if (query.state) select->Bind(2, static_cast<std::int64_t>(*query.state));
        select->Bind(3, query.before_time).Bind(4, query.before_id);
        select->Bind(5, static_cast<std::int64_t>(query.limit));
        return ReadAll<Message>(*select, ReadMessage);
      },
      std::move(done));
}

void SqliteLedger::ListDead(DeadQuery query, Done<std::vector<DeadMessage>> done) {
  Read<std::vector<DeadMessage>>(
      [query = std::move(query)](Connection& connection) -> Result<std::vector<DeadMessage>> {
        std::string sql = std::string(kSelectDead) + " (failed_at, event_id) > (?2, ?3)";
        if (!query.user_id.empty()) sql += " AND user_id = ?1";
        sql += " ORDER BY failed_at, event_id LIMIT ?4";
        Result<Statement> select = connection.Prepare(sql);
        if (!select.ok()) return select.error();
        if (!query.user_id.empty()) select->Bind(1, query.user_id);
        select->Bind(2, query.after_time).Bind(3, query.after_id);
        select->Bind(4, static_cast<std::int64_t>(query.limit));
        return ReadAll<DeadMessage>(*select, ReadDead);
      },
      std::move(done));
}

void SqliteLedger::FindDead(std::string event_id, Done<std::optional<DeadMessage>> done) {
  Read<std::optional<DeadMessage>>(
      [id = std::move(event_id)](Connection& connection) -> Result<std::optional<DeadMessage>> {
        Result<Statement> query = connection.Prepare(std::string(kSelectDead) + " event_id = ?1");
        if (!query.ok()) return query.error();
        query->Bind(1, id);
        return First(ReadAll<DeadMessage>(*query, ReadDead));
      },
      std::move(done));
}

void SqliteLedger::Replay(std::vector<std::string> event_ids, Done<std::vector<std::string>> done) {
  Write<std::vector<std::string>>(
      [this,
       ids = std::move(event_ids)](Connection& connection) -> Result<std::vector<std::string>> {
        Result<std::vector<DeadMessage>> letters = TakeDead(connection, ids);
        if (!letters.ok()) return letters.error();
        Result<Statement> put = connection.Prepare(kPutEvent);
        if (!put.ok()) return put.error();
        for (const DeadMessage& letter : *letters) {
          if (Status s = put->Bind(1, letter.event).Run(); !s.ok()) return s.error();
          Status set = SetState(connection, letter.event_id, MessageState::kQueued, letter.error,
                                NowMicros(clock_));
          if (!set.ok()) return set.error();
        }
        return IdsOf(*letters);
      },
      [this, done = std::move(done)](Result<std::vector<std::string>> ids) {
        if (ids.ok()) on_change_(ids->size(), ids->size());
        done(std::move(ids));
      });
}

void SqliteLedger::Drop(std::vector<std::string> event_ids, Done<std::vector<std::string>> done) {
  Write<std::vector<std::string>>(
      [this,
       ids = std::move(event_ids)](Connection& connection) -> Result<std::vector<std::string>> {
        Result<std::vector<DeadMessage>> letters = TakeDead(connection, ids);
        if (!letters.ok()) return letters.error();
        for (const DeadMessage& letter : *letters) {
          Status set = SetState(connection, letter.event_id, MessageState::kDropped, letter.error,
                                NowMicros(clock_));
          if (!set.ok()) return set.error();
        }
        return IdsOf(*letters);
      },
      [this, done = std::move(done)](Result<std::vector<std::string>> ids) {
        if (ids.ok()) on_change_(ids->size(), 0);
        done(std::move(ids));
      });
}

void SqliteLedger::ListUsers(std::string after, std::size_t limit,
                             Done<std::vector<UserLimit>> done) {
  Read<std::vector<UserLimit>>(
      [after = std::move(after), limit](Connection& connection) -> Result<std::vector<UserLimit>> {
        Result<Statement> query = connection.Prepare(kListUsers);
        if (!query.ok()) return query.error();
        query->Bind(1, after).Bind(2, static_cast<std::int64_t>(limit));
        return ReadAll<UserLimit>(*query, [](const Statement& row) {
          return UserLimit{std::string(row.Text(0)), row.Int(1), row.Int(2), row.Int(3),
                           row.Int(4)};
        });
      },
      std::move(done));
}

void SqliteLedger::PutPreferences(Preferences preferences, Done<Preferences> done) {
  Write<Preferences>(
      [wanted = std::move(preferences)](Connection& connection) -> Result<Preferences> {
        Result<Statement> put = connection.Prepare(kPutPreferences);
        if (!put.ok()) return put.error();
        const QuietHours quiet = wanted.quiet.value_or(QuietHours{});
        put->Bind(1, wanted.user_id).Bind(2, std::int64_t{quiet.from});
        put->Bind(3, std::int64_t{quiet.to}).Bind(4, quiet.zone);
        put->Bind(5, JoinChannels(wanted.opted_out));
        if (Status s = put->Run(); !s.ok()) return s.error();
        return wanted;
      },
      std::move(done));
}

void SqliteLedger::FindPreferences(std::string user_id, Done<std::optional<Preferences>> done) {
  Read<std::optional<Preferences>>(
      [user = std::move(user_id)](Connection& connection) {
        return ReadPreferences(connection, user);
      },
      std::move(done));
}

}  // namespace weir::notify::sqlite
