#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "drivers/postgres/worker.h"
#include "slots/batch.h"
#include "slots/postgres/reading.h"
#include "slots/postgres/slot_store.h"
#include "slots/postgres/timings.h"

// A batch of events gets its slots: a function call for each config.

namespace weir::slots::postgres {
namespace {

using weir::postgres::Params;
using weir::postgres::Rows;
using AssignAnswer = weir::postgres::Answer;

// See weir_slots_assign.
constexpr int kAskAgain = 4;
constexpr int kOtherVersion = 9;
constexpr std::int64_t kRefused = -1;

Params AssignParams(const std::vector<Ask>& asks, const ConfigGroup& group, const Config* timed) {
  std::optional<Timing> timing;
  if (timed != nullptr) timing.emplace(*timed, MachineMillis());
  std::vector<std::string_view> events;
  std::vector<std::int64_t> requested;
  std::vector<std::int64_t> earliest;
  std::vector<std::optional<std::string_view>> tenants;
  std::vector<std::int64_t> randoms;
  std::vector<std::optional<std::string_view>> payloads;
  for (std::size_t index : group.asks) {
    const Ask& ask = asks[index];
    events.push_back(ask.event_id);
    requested.push_back(ask.requested);
    earliest.push_back(timing ? timing->Earliest(ask.requested).value_or(kRefused) : ask.requested);
    tenants.push_back(ask.tenant.empty() ? std::nullopt
                                         : std::optional<std::string_view>(ask.tenant));
    randoms.push_back(ask.random);
    payloads.push_back(ask.payload.empty() ? std::nullopt
                                           : std::optional<std::string_view>(ask.payload));
  }
  Params params;
  params.Text(group.config)
      .TextArray(events)
      .IntArray(requested)
      .IntArray(earliest)
      .TextArray(tenants)
      .IntArray(randoms)
      .TextArray(payloads);
  const auto accepted = std::upper_bound(earliest.begin(), earliest.end(), kRefused);
  AppendTiming(params, timed, timing, {accepted, earliest.end()});
  return params;
}

}  // namespace

// What happens to one AssignMany until all of its groups are answered. On the worker's thread.
struct PostgresSlotStore::Assignment {
  std::vector<Ask> asks;
  Batch batch;
  std::vector<Answer> answers;
  std::size_t open = 0;  // groups that are not answered yet
  Status failure;
  SlotStore::Done<std::vector<Answer>> done;
  std::vector<std::size_t> again;  // asks whose event was being archived, or whose config is new
  std::vector<std::string> stale;  // configs whose calendars must be read

  Assignment(std::vector<Ask> given, SlotStore::Done<std::vector<Answer>> callback)
      : asks(std::move(given)), batch(asks), answers(asks.size()), done(std::move(callback)) {}

  void TakeGroup(const ConfigGroup& group, const Rows& rows) {
    for (int row = 0; row < rows.size(); ++row) {
      const std::size_t index = group.asks[static_cast<std::size_t>(rows.Int(row, 0) - 1)];
      const std::int64_t outcome = rows.Int(row, 1);
      const Ask& ask = asks[index];
      Answer& answer = answers[index];
      if (outcome == kAskAgain || outcome == kOtherVersion) {
        if (outcome == kOtherVersion && (stale.empty() || stale.back() != group.config)) {
          stale.emplace_back(group.config);
        }
        again.push_back(index);
        continue;
      }
      answer.outcome = static_cast<Outcome>(outcome);
      if (WasThere(answer.outcome)) {
        answer.slot = ReadSlot(rows, row, 2, ask.event_id);
      } else {
        answer.slot = {ask.event_id,  ask.config,       ask.tenant,
                       ask.requested, rows.Int(row, 5), rows.Int(row, 6)};
      }
    }
  }

  void Finish() {
    if (!failure.ok()) return done(failure.error());
    batch.CopyAnswers(asks, answers);
    done(std::move(answers));
  }
};

void PostgresSlotStore::AssignMany(std::vector<Ask> asks, Done<std::vector<Answer>> done) {
  auto work = std::make_shared<Assignment>(std::move(asks), std::move(done));
  worker_->Post([this, work] {
    work->open = work->batch.groups().size();
    if (work->open == 0) return work->Finish();
    for (const ConfigGroup& group : work->batch.groups()) {
      worker_->Run(
          "SELECT * FROM weir_slots_assign($1, $2, $3, $4, $5, $6, $7, $8::int, $9::bigint[], "
          "$10::bigint[])",
          AssignParams(work->asks, group, Timed(group.config)),
          [this, work, &group](AssignAnswer answer) {
            if (answer.status.ok()) {
              work->TakeGroup(group, answer.rows);
            } else {
              work->failure = answer.status;
            }
            if (--work->open > 0) return;
            if (!work->failure.ok() || work->again.empty()) return work->Finish();
            LearnTimings(std::move(work->stale), [this, work](const Status& learned) {
              if (!learned.ok()) return work->done(learned.error());
              AssignAgain(work);
            });
          });
    }
  });
}

void PostgresSlotStore::AssignAgain(const std::shared_ptr<Assignment>& work) {
  std::vector<Ask> rest;
  for (std::size_t index : work->again) rest.push_back(work->asks[index]);
  AssignMany(std::move(rest), [work](Result<std::vector<Answer>> answers) {
    if (!answers.ok()) return work->done(answers.error());
    for (std::size_t i = 0; i < work->again.size(); ++i) {
      work->answers[work->again[i]] = std::move((*answers)[i]);
    }
    work->Finish();
  });
}

}  // namespace weir::slots::postgres
