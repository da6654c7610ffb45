#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "drivers/sqlite/database.h"
#include "notify/ledger.h"
#include "weir/clock.h"

namespace weir::notify::sqlite {

/// The embedded ledger: tables next to the outbox, in the same file.
///
/// Thread-safe.
class SqliteLedger final : public Ledger {
 public:
  /// The gateway has created the tables. All arguments must outlive this. `on_change` is called, on
  /// the writer's thread, with how many dead letters were removed and how many of them queued.
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
  /// Removes dead letters; if they become kQueued, they are put into the outbox again.
  void TakeOut(std::vector<std::string> event_ids, MessageState state,
               Done<std::vector<std::string>> done);

  weir::sqlite::Database& database_;
  const Clock& clock_;
  const std::function<void(std::size_t, std::size_t)> on_change_;
};

/// The preferences of a user that has set any.
Result<std::optional<Preferences>> ReadPreferences(weir::sqlite::Connection& connection,
                                                   const std::string& user_id);

}  // namespace weir::notify::sqlite
