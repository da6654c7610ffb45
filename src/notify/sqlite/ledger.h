#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "drivers/sqlite/database.h"
#include "notify/ledger.h"
#include "weir/clock.h"

namespace weir::notify::sqlite {

/// The embedded ledger: tables beside the outbox, in the same file.
///
/// Thread-safe.
class SqliteLedger final : public Ledger {
 public:
  /// The gateway has made the tables. What is given must outlive this. `on_change` is told, on the
  /// writer's thread, that so many dead letters are gone, and how many of them are in the outbox.
  SqliteLedger(weir::sqlite::Database& database, const Clock& clock,
               std::function<void(std::size_t gone, std::size_t queued)> on_change)
      : database_(database), clock_(clock), on_change_(std::move(on_change)) {}

  void Find(std::string event_id, Done<std::optional<Message>> done) override;
  void List(MessageQuery query, Done<std::vector<Message>> done) override;
  void ListDead(DeadQuery query, Done<std::vector<DeadMessage>> done) override;
  void FindDead(std::string event_id, Done<std::optional<DeadMessage>> done) override;
  void Replay(std::vector<std::string> event_ids, Done<std::vector<std::string>> done) override;
  void Drop(std::vector<std::string> event_ids, Done<std::vector<std::string>> done) override;
  void ListUsers(std::string after, std::size_t limit, Done<std::vector<UserLimit>> done) override;
  void PutPreferences(Preferences preferences, Done<Preferences> done) override;
  void FindPreferences(std::string user_id, Done<std::optional<Preferences>> done) override;

 private:
  template <typename T, typename Work>
  void Read(Work work, Done<T> done);
  template <typename T, typename Work>
  void Write(Work work, Done<T> done);
  /// Takes dead letters out; if they become kQueued, they are in the outbox again.
  void TakeOut(std::vector<std::string> event_ids, MessageState state,
               Done<std::vector<std::string>> done);

  weir::sqlite::Database& database_;
  const Clock& clock_;
  const std::function<void(std::size_t, std::size_t)> on_change_;
};

/// Of users that have expressed any.
Result<std::optional<Preferences>> ReadPreferences(weir::sqlite::Connection& connection,
                                                   const std::string& user_id);

}  // namespace weir::notify::sqlite
