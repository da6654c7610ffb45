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

Result<std::optional<DeadMessage>> FindDeadMessage(Connection& connection, const std::string& id) {
  return connection.ReadFirst(std::string(kSelectDead) + " event_id = ?1", ReadDead, id);
}

/// Removes dead letters; returns those removed, with their events. If they are to be delivered
/// again, those that were not events stay.
Result<std::vector<DeadMessage>> TakeDead(Connection& connection,
                                          const std::vector<std::string>& ids, bool again) {
  std::vector<DeadMessage> taken;
  for (const std::string& id : ids) {
    Result<std::optional<DeadMessage>> dead = FindDeadMessage(connection, id);
    if (!dead.ok()) return dead.error();
    if (!dead->has_value() || (again && (*dead)->user_id.empty())) continue;
    if (Status s = connection.Run(kDeleteDead, id); !s.ok()) return s.error();
    taken.push_back(std::move(**dead));
  }
  return taken;
}

}  // namespace

Result<std::optional<Preferences>> ReadPreferences(Connection& connection,
                                                   const std::string& user_id) {
  return connection.ReadFirst(
      kReadPreferences,
      [&](const Statement& row) {
        Preferences found{.user_id = user_id, .opted_out = SplitChannels(row.Text(3))};
        if (row.Int(0) != row.Int(1)) {
          found.quiet = QuietHours{static_cast<int>(row.Int(0)), static_cast<int>(row.Int(1)),
                                   std::string(row.Text(2))};
        }
        return found;
      },
      user_id);
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
      [id = std::move(event_id)](Connection& connection) {
        return connection.ReadFirst(std::string(kSelectMessage) + " event_id = ?1", ReadMessage,
                                    id);
      },
      std::move(done));
}

void SqliteLedger::List(MessageQuery query, Done<std::vector<Message>> done) {
  Read<std::vector<Message>>(
      [query = std::move(query)](Connection& connection) {
        std::string sql = std::string(kSelectMessage) + " (accepted_at, event_id) < (?3, ?4)";
        if (!query.user_id.empty()) sql += " AND user_id = ?1";
        if (query.state) sql += query.user_id.empty() ? " AND state = ?2" : " AND +state = ?2";
        sql += " ORDER BY accepted_at DESC, event_id DESC LIMIT ?5";
        return connection.ReadAll(sql, ReadMessage, query.user_id,
                                  query.state.value_or(MessageState::kQueued), query.before_time,
                                  query.before_id, query.limit);
      },
      std::move(done));
}

void SqliteLedger::ListDead(DeadQuery query, Done<std::vector<DeadMessage>> done) {
  Read<std::vector<DeadMessage>>(
      [query = std::move(query)](Connection& connection) {
        std::string sql = std::string(kSelectDead) + " (failed_at, event_id) > (?2, ?3)";
        if (!query.user_id.empty()) sql += " AND user_id = ?1";
        if (query.events_only) sql += " AND user_id <> ''";
        sql += " ORDER BY failed_at, event_id LIMIT ?4";
        return connection.ReadAll(sql, ReadDead, query.user_id, query.after_time, query.after_id,
                                  query.limit);
      },
      std::move(done));
}

void SqliteLedger::FindDead(std::string event_id, Done<std::optional<DeadMessage>> done) {
  Read<std::optional<DeadMessage>>(
      [id = std::move(event_id)](Connection& connection) {
        return FindDeadMessage(connection, id);
      },
      std::move(done));
}

void SqliteLedger::TakeOut(std::vector<std::string> event_ids, MessageState state,
                           Done<std::vector<std::string>> done) {
  const bool again = state == MessageState::kQueued;
  Write<std::vector<std::string>>(
      [this, state, again,
       ids = std::move(event_ids)](Connection& connection) -> Result<std::vector<std::string>> {
        Result<std::vector<DeadMessage>> letters = TakeDead(connection, ids, again);
        if (!letters.ok()) return letters.error();
        std::vector<std::string> taken;
        for (DeadMessage& letter : *letters) {
          Status s = again ? connection.Run(kPutEvent, letter.event) : Status();
          if (!s.ok()) return s.error();
          s = connection.Run(kTakeOutMessage, letter.event_id, state, letter.error,
                             NowMicros(clock_));
          if (!s.ok()) return s.error();
          taken.push_back(std::move(letter.event_id));
        }
        return taken;
      },
      [this, again, done = std::move(done)](Result<std::vector<std::string>> ids) {
        if (ids.ok()) on_change_(ids->size(), again ? ids->size() : 0);
        done(std::move(ids));
      });
}

void SqliteLedger::Replay(std::vector<std::string> event_ids, Done<std::vector<std::string>> done) {
  TakeOut(std::move(event_ids), MessageState::kQueued, std::move(done));
}

void SqliteLedger::Drop(std::vector<std::string> event_ids, Done<std::vector<std::string>> done) {
  TakeOut(std::move(event_ids), MessageState::kDropped, std::move(done));
}

void SqliteLedger::ListUsers(std::string after, std::size_t limit,
                             Done<std::vector<UserLimit>> done) {
  Read<std::vector<UserLimit>>(
      [after = std::move(after), limit](Connection& connection) {
        return connection.ReadAll(
            kListUsers,
            [](const Statement& row) {
              return UserLimit{std::string(row.Text(0)), row.Int(1), row.Int(2), row.Int(3),
                               row.Int(4)};
            },
            after, limit);
      },
      std::move(done));
}

void SqliteLedger::PutPreferences(Preferences preferences, Done<Preferences> done) {
  Write<Preferences>(
      [wanted = std::move(preferences)](Connection& connection) -> Result<Preferences> {
        const QuietHours quiet = wanted.quiet.value_or(QuietHours{});
        Status s = connection.Run(kPutPreferences, wanted.user_id, quiet.from, quiet.to, quiet.zone,
                                  JoinChannels(wanted.opted_out));
        if (!s.ok()) return s.error();
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
