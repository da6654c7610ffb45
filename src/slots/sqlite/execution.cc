#include "slots/sqlite/execution.h"

#include <algorithm>
#include <string>
#include <utility>

#include "slots/config.h"
#include "slots/sqlite/claim_notes.h"
#include "slots/sqlite/configs.h"
#include "slots/sqlite/counts.h"
#include "slots/sqlite/events.h"
#include "slots/sqlite/sql.h"
#include "slots/sqlite/transaction.h"
#include "slots/window.h"

namespace weir::slots::sqlite {
namespace {

using weir::sqlite::Connection;
using weir::sqlite::Statement;

constexpr int kMaxWindowsAhead = 64;
constexpr std::int64_t kEndedAtOnce = 10'000;
constexpr Millis kLongestSpread = 10'000;

/// A due event that may be chosen.
struct Candidate {
  Claimed claimed;
  bool beyond = false;  // beyond its class's share
};

/// One call of ClaimEvents. Not thread-safe: lives inside a job.
class Claiming {
 public:
  Claiming(Connection& connection, const ClaimRequest& request, const StoredConfig& stored)
      : connection_(connection),
        request_(request),
        id_(stored.id),
        config_(stored.config),
        ahead_(request.ahead) {
    claim_.now = request.now > 0 ? request.now : MachineMillis();
    for (const auto& [name, weight] : config_.tenants) total_ += weight;
  }

  Result<Claim> Run() {
    if (Status s = EndLeases(); !s.ok()) return s.error();
    if (!IsOpen()) return std::move(claim_);
    Millis window = WindowOf(claim_.now, config_.window_size);
    std::int64_t wants = static_cast<std::int64_t>(request_.max);
    for (int round = 0; round < kMaxWindowsAhead && wants > 0; ++round) {
      if (window > claim_.now + ahead_) break;
      Result<std::int64_t> left = GrantsLeft(connection_, id_, {config_.window_size, window},
                                             config_.max_per_window, request_.lease);
      if (!left.ok()) return left.error();
      const std::int64_t budget = std::min(wants, *left);
      Result<std::int64_t> taken = Serve(window, budget);
      if (!taken.ok()) return taken.error();
      wants -= *taken;
      window += config_.window_size;
    }
    return std::move(claim_);
  }

 private:
  bool IsOpen();
  Status EndLeases();
  Result<std::int64_t> Serve(Millis window, std::int64_t budget);
  Result<std::vector<Candidate>> Near(Millis horizon, std::int64_t budget);
  Status AddClass(std::string_view name, std::int64_t share, Millis horizon, std::int64_t budget,
                  std::vector<Candidate>& near);
  Millis LateTime(Millis window, const std::string& event, std::int64_t rank,
                  std::int64_t late) const;
  Status Take(Millis window, Claimed claimed);

  Connection& connection_;
  const ClaimRequest& request_;
  const std::int64_t id_;
  const Config& config_;
  std::int64_t total_ = 0;
  Millis ahead_;
  Millis closing_ = kMaxInstant;
  Claim claim_;
};

// Nothing is executed while the calendar is closed, nor claimed ahead past the cut-off.
bool Claiming::IsOpen() {
  if (!config_.calendar.any()) return true;
  const std::optional<OpenTime> open = OpenTimes(config_.calendar).At(claim_.now);
  if (!open || open->from > claim_.now) return false;
  ahead_ = std::min(ahead_, open->until - 1 - claim_.now);
  closing_ = claim_.not_after = open->until;
  return true;
}

// Events whose lease has ended are due again. They may have been executed until then.
Status Claiming::EndLeases() {
  struct Lapsed {
    std::string event, by, tenant;
    Millis until;
    GrantWindow window;
  };
  const auto gone = connection_.ReadAll(
      kFindEndedLeases,
      [](const Statement& row) {
        return Lapsed{std::string(row.Text(0)),
                      std::string(row.Text(1)),
                      std::string(row.Text(2)),
                      row.Int(3),
                      {row.Int(4), row.Int(5)}};
      },
      id_, claim_.now, kEndedAtOnce);
  if (!gone.ok()) return gone.error();
  for (const Lapsed& one : *gone) {
    Status s = connection_.Run(kEndLease, one.event, ClassOf(config_, one.tenant));
    if (s.ok()) s = CountEnd(connection_, id_, one.window, one.until);
    if (s.ok()) s = NoteChange(connection_, one.event, one.until, "lease-ended", one.by);
    if (!s.ok()) return s;
  }
  return {};
}

Status Claiming::AddClass(std::string_view name, std::int64_t share, Millis horizon,
                          std::int64_t budget, std::vector<Candidate>& near) {
  Result<Statement> query = connection_.Prepare(kFindDueOfClass);
  if (!query.ok()) return query.error();
  std::int64_t rank = 0;
  return query->BindAll(id_, name, horizon, budget).ForEach([&](const Statement& row) {
    near.push_back({{.slot = {.event_id = std::string(row.Text(0)),
                              .config = config_.name,
                              .tenant = std::string(row.Text(1)),
                              .requested = row.Int(2),
                              .window_start = row.Int(3),
                              .scheduled = row.Int(4)},
                     .attempt = row.Int(5) + 1,
                     .payload = std::string(row.Text(6))},
                    ++rank > share});
  });
}

// The oldest due events: first those within the shares of their classes, then the others.
Result<std::vector<Candidate>> Claiming::Near(Millis horizon, std::int64_t budget) {
  std::vector<Candidate> near;
  if (config_.tenants.empty()) {
    Status s = AddClass("", budget, horizon, budget, near);
    if (!s.ok()) return s.error();
    return near;
  }
  // Fractional shares are rounded randomly, all by the same number, so that they add up: a class
  // with a third of a grant gets one in three.
  std::int64_t upto = request_.random % total_;
  for (const auto& [name, weight] : config_.tenants) {
    const std::int64_t before = std::exchange(upto, upto + weight * budget);
    Status s = AddClass(name, upto / total_ - before / total_, horizon, budget, near);
    if (!s.ok()) return s.error();
  }
  std::stable_sort(near.begin(), near.end(), [](const Candidate& a, const Candidate& b) {
    if (a.beyond != b.beyond) return b.beyond;
    return a.claimed.slot.scheduled < b.claimed.slot.scheduled;
  });
  if (near.size() > static_cast<std::size_t>(budget)) {
    near.resize(static_cast<std::size_t>(budget));
  }
  return near;
}

Result<std::int64_t> Claiming::Serve(Millis window, std::int64_t budget) {
  const Millis horizon = std::min(claim_.now + ahead_, window + config_.window_size - 1);
  Result<std::vector<Candidate>> near = Near(horizon, std::max<std::int64_t>(budget, 1));
  if (!near.ok()) return near.error();
  claim_.capped = budget <= 0 && !near->empty();
  if (budget <= 0) return 0;
  // In order of scheduled time, regardless of class.
  std::stable_sort(near->begin(), near->end(), [](const Candidate& a, const Candidate& b) {
    return a.claimed.slot.scheduled < b.claimed.slot.scheduled;
  });
  const auto late = std::count_if(near->begin(), near->end(), [window](const Candidate& candidate) {
    return candidate.claimed.slot.scheduled < window;
  });
  for (std::int64_t rank = 0; Candidate & one : *near) {
    one.claimed.execute_at = rank < late ? LateTime(window, one.claimed.slot.event_id, rank, late)
                                         : std::max(claim_.now, one.claimed.slot.scheduled);
    ++rank;
    if (Status s = Take(window, std::move(one.claimed)); !s.ok()) return s.error();
  }
  const auto taken = static_cast<std::int64_t>(near->size());
  if (taken > 0) {
    Status s = CountGrants(connection_, id_, {config_.window_size, window}, taken);
    if (!s.ok()) return s.error();
  }
  return taken;
}

// Overdue events are spread over the rest of the window in order of their times, each at a random
// moment of its own part, so that a backlog does not come in bursts. If they are few, they are not
// delayed further.
Millis Claiming::LateTime(Millis window, const std::string& event, std::int64_t rank,
                          std::int64_t late) const {
  const Millis from = std::max(claim_.now, window);
  const Millis rest =
      std::min({window + config_.window_size - from, kLongestSpread, closing_ - from});
  const Millis span = std::min(rest, LateSpan(config_.window_size, config_.max_per_window, late));
  const auto salt = static_cast<std::int64_t>(std::hash<std::string>()(event) >> 2U);
  return from + (rank * span + ((request_.random >> 1U) + salt / 2) % span) / late;
}

Status Claiming::Take(Millis window, Claimed claimed) {
  claimed.lease_until = claimed.execute_at + request_.lease;
  Status s = connection_.Run(kClaimEvent, claimed.slot.event_id, claimed.attempt, claim_.now,
                             request_.by, config_.window_size, window, claimed.lease_until);
  if (!s.ok()) return s;
  claim_.events.push_back(std::move(claimed));
  return {};
}

Result<Finished> FinishOne(Connection& connection, const Finish& end, Millis now) {
  Result<std::optional<StoredSlot>> found = LoadSlot(connection, end.event_id);
  if (!found.ok()) return found.error();
  if (!found->has_value()) return Finished::kUnknown;
  const StoredSlot& there = **found;
  const State wanted = end.failed ? State::kFailed : State::kDone;
  if (there.attempts != end.attempt || end.attempt < 1) return Finished::kLost;
  if (there.state == wanted) return Finished::kAlready;
  const bool open = there.state == State::kScheduled || there.state == State::kClaimed;
  if (!open || there.claimed_at == 0) return Finished::kLost;
  const Millis at = EndOf(end, there.claimed_at, now);
  Result<Statement> update = connection.Prepare(kFinishEvent);
  if (!update.ok()) return update.error();
  update->Bind(1, end.event_id).Bind(2, static_cast<std::int64_t>(wanted));
  if (end.failed) {
    update->Bind(3, end.error);
  } else {
    update->BindNull(3);
  }
  if (Status s = update->Bind(4, at).Run(); !s.ok()) return s.error();
  if (there.exec_size > 0) {
    Status s = CountEnd(connection, there.config_id, {there.exec_size, there.exec_window}, at);
    if (!s.ok()) return s.error();
  }
  return Finished::kOk;
}

// Whether this failure is the last one that the event is allowed.
Result<bool> IsLast(Connection& connection, const Finish& end) {
  if (end.most_failures == 0 || !end.counts) return false;
  Result<std::optional<StoredSlot>> found = LoadSlot(connection, end.event_id);
  if (!found.ok()) return found.error();
  // One that was told before is not another.
  return found->has_value() && (*found)->claimed_at > 0 &&
         (*found)->failures + 1 >= end.most_failures;
}

Result<Finished> Retry(Connection& connection, const Finish& end, Millis now) {
  Result<bool> last = IsLast(connection, end);
  if (!last.ok()) return last.error();
  if (!*last) return RetryEvent(connection, end, now);
  Result<Finished> ended = FinishOne(connection, end, now);
  if (!ended.ok() || *ended != Finished::kOk) return ended;
  // If it is rescheduled, the event gets the full number of tries again.
  Result<Statement> forget = connection.Prepare(kForgetFailures);
  if (!forget.ok()) return forget.error();
  if (Status s = forget->Bind(1, end.event_id).Run(); !s.ok()) return s.error();
  return Finished::kGivenUp;
}

}  // namespace

Result<Claim> ClaimEvents(Connection& connection, const ClaimRequest& request) {
  Result<std::optional<StoredConfig>> stored = LoadLatest(connection, request.config);
  if (!stored.ok()) return stored.error();
  if (!stored->has_value()) {
    return Error{Code::kNotFound, "there is no config '" + request.config + "'"};
  }
  Result<Claim> claim = Claiming(connection, request, **stored).Run();
  if (!request.noted || !claim.ok() || claim->events.empty()) return claim;
  if (Status s = NoteClaim(connection, request, *claim); !s.ok()) return s.error();
  return claim;
}

Result<std::vector<Finished>> FinishEvents(Connection& connection, std::span<const Finish> ends) {
  const Millis now = MachineMillis();
  std::vector<Finished> answers;
  answers.reserve(ends.size());
  for (const Finish& end : ends) {
    Result<Finished> one =
        end.failed && end.retry_at ? Retry(connection, end, now) : FinishOne(connection, end, now);
    if (!one.ok()) return one.error();
    answers.push_back(*one);
  }
  return answers;
}

}  // namespace weir::slots::sqlite
