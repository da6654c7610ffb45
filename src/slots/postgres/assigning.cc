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

// Assigns a batch of events: one function call for each config.

namespace weir::slots::postgres {
namespace {

using weir::postgres::Params;
using weir::postgres::Rows;
using AssignAnswer = weir::postgres::Answer;

// See weir_slots_assign.
constexpr int kAskAgain = 4;
constexpr int kOtherVersion = 9;
constexpr std::int64_t kRefused = -1;
constexpr Millis kHeldUp = -2;

// Windows locked by other transactions are skipped, as far as the headroom reaches. A transaction
// that gets no processor for a second may hold the first open window while others fill a hundred
// after it. That is no reason to refuse requests, so this waits for it, up to three seconds in
// total; but only then: a request that finds no room for other reasons would delay all others.
constexpr const char* kPause = "SELECT pg_sleep(0.05)";
constexpr int kMostPauses = 60;

// An ID that occurs in one batch with many payloads must not cause as many calls: beyond this, the
// remaining ones are not answered.
constexpr int kMostRepeats = 8;

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

// The state of one AssignMany until all of its groups are answered. On the worker's thread.
struct PostgresSlotStore::Assignment {
  std::vector<Ask> asks;
  Batch batch;
  std::vector<Answer> answers;
  std::size_t open = 0;  // groups not answered yet
  Status failure;
  SlotStore::Done<std::vector<Answer>> done;
  std::vector<std::size_t> again;  // asks whose event was being archived, or whose config is new
  std::vector<std::string> stale;  // configs whose calendars must be read
  bool held_up = false;            // some of `again` wait for windows that other transactions hold
  int pauses = 0;                  // pauses made so far
  int repeats = 0;  // how often it has repeated asks that a request with the same ID left unknown

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
      if (answer.outcome == Outcome::kExhausted && rows.Int(row, 6) == kHeldUp &&
          pauses < kMostPauses) {
        held_up = true;
        again.push_back(index);
        continue;
      }
      if (WasThere(answer.outcome)) {
        answer.slot = ReadSlot(rows, row, 2, ask.event_id);
      } else {
        answer.slot = {ask.event_id,  ask.config,       ask.tenant,
                       ask.requested, rows.Int(row, 5), rows.Int(row, 6)};
      }
    }
  }

  /// Stores the answers to `which` and calls `then`, or fails.
  template <typename Then>
  void Take(const std::vector<std::size_t>& which, Result<std::vector<Answer>> given, Then then) {
    if (!given.ok()) return done(given.error());
    for (std::size_t i = 0; i < which.size(); ++i) answers[which[i]] = std::move((*given)[i]);
    then();
  }
};

void PostgresSlotStore::AssignMany(std::vector<Ask> asks, Done<std::vector<Answer>> done) {
  Assign(std::make_shared<Assignment>(std::move(asks), std::move(done)));
}

void PostgresSlotStore::Assign(const std::shared_ptr<Assignment>& work) {
  worker_->Post([this, work] {
    work->open = work->batch.groups().size();
    if (work->open == 0) return Conclude(work);
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
            if (--work->open == 0) AfterGroups(work);
          });
    }
  });
}

void PostgresSlotStore::AfterGroups(const std::shared_ptr<Assignment>& work) {
  if (!work->failure.ok()) return work->done(work->failure.error());
  if (work->again.empty()) return Conclude(work);
  const auto proceed = [this, work](const Status& status) {
    if (!status.ok()) return work->done(status.error());
    AssignAgain(work);
  };
  if (!work->held_up) return LearnTimings(std::move(work->stale), proceed);
  ++work->pauses;
  worker_->Run(kPause, Params(), [this, work, proceed](const AssignAnswer& answer) {
    if (!answer.status.ok()) return proceed(answer.status);
    LearnTimings(std::move(work->stale), proceed);
  });
}

void PostgresSlotStore::AssignAgain(const std::shared_ptr<Assignment>& work) {
  std::vector<Ask> rest;
  for (std::size_t index : work->again) rest.push_back(work->asks[index]);
  auto next = std::make_shared<Assignment>(
      std::move(rest), [this, work](Result<std::vector<Answer>> answers) {
        work->Take(work->again, std::move(answers), [&] { Conclude(work); });
      });
  next->pauses = work->pauses;
  Assign(next);
}

void PostgresSlotStore::Conclude(const std::shared_ptr<Assignment>& work) {
  const std::vector<std::size_t> unknown = work->batch.CopyAnswers(work->asks, work->answers);
  if (work->repeats == kMostRepeats) {
    for (std::size_t index : unknown) work->answers[index] = {.outcome = Outcome::kUnanswered};
  }
  if (unknown.empty() || work->repeats == kMostRepeats) {
    return work->done(std::move(work->answers));
  }
  std::vector<Ask> rest;
  for (std::size_t index : unknown) rest.push_back(work->asks[index]);
  auto next = std::make_shared<Assignment>(
      std::move(rest), [work, unknown](Result<std::vector<Answer>> answers) {
        work->Take(unknown, std::move(answers), [&] { work->done(std::move(work->answers)); });
      });
  next->pauses = work->pauses;
  next->repeats = work->repeats + 1;
  Assign(next);
}

}  // namespace weir::slots::postgres
