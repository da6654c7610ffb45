#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "slots/slot_store.h"
#include "weir/result.h"

namespace weir::slots::postgres {

struct Options {
  std::string url = {};         ///< postgres://…
  std::size_t connections = 2;  ///< besides one for long reads
};

/// Slots in PostgreSQL: one function call per config of a batch, all in one round trip; see
/// schema.cc for how the functions work. Any number of processes may share a database. The tables
/// are made on the first use; until the server can be reached, everything is answered with
/// kUnavailable.
class PostgresSlotStore final : public SlotStore {
 public:
  explicit PostgresSlotStore(Options options);
  /// Answers what is under way with kUnavailable.
  ~PostgresSlotStore() override;

  void AssignMany(std::vector<Ask> asks, Done<std::vector<Answer>> done) override;
  void Look(std::string event_id, Done<std::optional<Event>> done) override;
  void Cancel(std::string event_id, Done<std::optional<Slot>> done) override;
  void Reschedule(Ask ask, Done<std::optional<Answer>> done) override;
  void Restore(Ask ask, Done<std::optional<Answer>> done) override;
  void ClaimDue(ClaimRequest request, Done<Claim> done) override;
  void FinishMany(std::vector<Finish> ends, Done<std::vector<Finished>> done) override;
  void ListDue(DueQuery query, Done<std::vector<Event>> done) override;
  void ListBacklogs(Millis now, Done<std::vector<Backlog>> done) override;
  void PutConfig(Config config, Done<Config> done) override;
  void GetConfig(std::string name, Done<std::optional<Config>> done) override;
  void ListConfigs(Done<std::vector<Config>> done) override;
  void ListVersions(std::string name, Done<std::vector<Config>> done) override;
  void Deactivate(std::string name, Done<bool> done) override;
  void ListWindows(std::string config, Millis from, std::size_t limit,
                   Done<std::vector<WindowLoad>> done) override;
  void Verify(Done<Findings> done) override;

 private:
  class Worker;
  /// Reschedules, or, with `from_cancelled`, restores.
  void Move(Ask ask, bool from_cancelled, Done<std::optional<Answer>> done);

  std::unique_ptr<Worker> worker_;
};

}  // namespace weir::slots::postgres
