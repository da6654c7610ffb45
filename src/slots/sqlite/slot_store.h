#pragma once

#include <memory>
#include <vector>

#include "drivers/sqlite/database.h"
#include "slots/slot_store.h"

namespace weir::slots::sqlite {

/// Slots in the embedded database. Writes are jobs of its single writer, so batches run one after
/// another and share commits. Reads run on its reader threads; at most one Verify runs at a time,
/// and if too many are waiting, more are refused with kResourceExhausted.
class SqliteSlotStore final : public SlotStore {
 public:
  /// Creates the tables if needed. `database` must outlive the store.
  static Result<std::unique_ptr<SqliteSlotStore>> Open(weir::sqlite::Database& database);
  /// The database must have finished the store's jobs, or be closed after this.
  ~SqliteSlotStore() override = default;

  void AssignMany(std::vector<Ask> asks, Done<std::vector<Answer>> done) override;
  void Look(std::string event_id, Done<std::optional<Event>> done) override;
  void Cancel(std::string event_id, Done<std::optional<Slot>> done) override;
  void Reschedule(MoveRequest request, Done<std::optional<Answer>> done) override;
  void Restore(MoveRequest request, Done<std::optional<Answer>> done) override;
  void ClaimDue(ClaimRequest request, Done<Claim> done) override;
  void FinishMany(std::vector<Finish> ends, Done<std::vector<Finished>> done) override;
  void TakeNotes(Millis now, Done<std::vector<ClaimNote>> done) override;
  void ForgetNotes(std::vector<ClaimNote> notes, Done<std::size_t> done) override;
  void ListDue(DueQuery query, Done<std::vector<Event>> done) override;
  void ListBacklogs(Millis now, Done<std::vector<Backlog>> done) override;
  void Retire(Retention retention, Done<Retired> done) override;
  void MarkRestored(Millis now, Done<Restored> done) override;
  void PutConfig(Config config, Done<Config> done) override;
  void GetConfig(std::string name, Done<std::optional<Config>> done) override;
  void ListConfigs(Done<std::vector<Config>> done) override;
  void ListVersions(std::string name, Done<std::vector<Config>> done) override;
  void Deactivate(std::string name, Done<bool> done) override;
  void ListWindows(std::string config, Millis from, std::size_t limit,
                   Done<std::vector<WindowLoad>> done) override;
  void Verify(Done<Findings> done) override;

 private:
  explicit SqliteSlotStore(weir::sqlite::Database& database) : database_(database) {}

  weir::sqlite::Database& database_;
};

}  // namespace weir::slots::sqlite
