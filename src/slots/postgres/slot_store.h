#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "slots/slot_store.h"
#include "weir/result.h"

namespace weir::postgres {
class Worker;
}  // namespace weir::postgres

namespace weir::slots::postgres {

struct Options {
  std::string url = {};         ///< postgres://…
  std::size_t connections = 2;  ///< plus one for long reads
};

/// Slots in PostgreSQL: one function call per config of a batch, all in one round trip; see
/// sql/tables.sql for how the functions work. Any number of processes may share a database. The
/// tables are created on first use; until the server can be reached, every call is answered with
/// kUnavailable.
class PostgresSlotStore final : public SlotStore {
 public:
  explicit PostgresSlotStore(Options options);
  ~PostgresSlotStore() override;

  void Close() override;

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
  struct Assignment;
  struct Ending;
  struct Moving;

  void LookInArchive(std::string event_id, Done<std::optional<Event>> done);
  /// Answers a call for an event that is not in the live table.
  template <typename T>
  void AnswerGone(const std::string& event_id, Done<std::optional<T>> done);
  void Assign(const std::shared_ptr<Assignment>& work);
  void AfterGroups(const std::shared_ptr<Assignment>& work);
  void AssignAgain(const std::shared_ptr<Assignment>& work);
  void Conclude(const std::shared_ptr<Assignment>& work);
  void Move(std::shared_ptr<Moving> moving);
  void TimeAndMove(const std::shared_ptr<Moving>& moving);
  void Retry(const std::shared_ptr<Ending>& work, std::size_t index, const Config* timed);
  void TimeAndRetry(const std::shared_ptr<Ending>& work, std::size_t index);
  /// The config, if its events need a Timing and it has been read; else null.
  const Config* Timed(std::string_view config) const;
  void LearnTimings(std::vector<std::string> names, std::function<void(Status)> then);

  // Configs with a calendar or a rule for the past, as last read; used on the worker's
  // thread only. The database reports when one is out of date.
  std::map<std::string, Config, std::less<>> timings_;
  std::unique_ptr<weir::postgres::Worker> worker_;
};

}  // namespace weir::slots::postgres
