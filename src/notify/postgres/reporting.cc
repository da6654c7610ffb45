// What senders report and read: results of deliveries, users' preferences, delays that have ended.

#include <utility>

#include "notify/postgres/ledger_core.h"
#include "notify/postgres/sql.h"

namespace weir::notify::postgres {
namespace {

using weir::postgres::Answer;
using weir::postgres::Params;
using weir::postgres::Rows;

constexpr Micros kDueLease = kMicrosPerMinute;

std::vector<std::string_view> Views(std::span<const std::string> texts) {
  return {texts.begin(), texts.end()};
}

/// The columns of kReport.
struct Columns {
  std::vector<std::string_view> ids, users, channels, recipients, errors;
  std::vector<std::int64_t> states, attempts, accepted, later;

  void Add(const Delivery& end) {
    ids.emplace_back(end.event.id);
    users.emplace_back(end.event.user_id);
    channels.emplace_back(end.event.channel);
    recipients.emplace_back(end.event.recipient);
    errors.emplace_back(end.error);
    states.push_back(static_cast<std::int64_t>(end.state));
    attempts.push_back(end.attempts);
    accepted.push_back(end.event.created_at);
    later.push_back(end.not_before);
  }
  Params ToParams(Micros now) const {
    Params params;
    params.TextArray(ids).TextArray(users).TextArray(channels).TextArray(recipients);
    params.IntArray(states).IntArray(attempts).TextArray(errors).IntArray(accepted);
    return std::move(params.IntArray(later).Int(now));
  }
};

Params DeadParams(const std::vector<const Delivery*>& dead, Micros now) {
  std::vector<std::string_view> ids, users, events, errors;
  std::vector<std::int64_t> attempts;
  for (const Delivery* end : dead) {
    ids.emplace_back(end->event.id);
    users.emplace_back(end->event.user_id);
    events.emplace_back(end->payload);
    errors.emplace_back(end->error);
    attempts.push_back(end->attempts);
  }
  Params params;
  params.TextArray(ids).TextArray(users).BytesArray(events).TextArray(errors).IntArray(attempts);
  return std::move(params.Int(now));
}

Params DelayedParams(const std::vector<const Delivery*>& delayed) {
  std::vector<std::string_view> ids, events;
  std::vector<std::int64_t> later;
  for (const Delivery* end : delayed) {
    ids.emplace_back(end->event.id);
    events.emplace_back(end->payload);
    later.push_back(end->not_before);
  }
  return std::move(Params().TextArray(ids).TextArray(events).IntArray(later));
}

Preferences ReadPreferences(const Rows& rows, int row) {
  Preferences found{.user_id = std::string(rows.Text(row, 0)),
                    .opted_out = SplitChannels(rows.Text(row, 4))};
  if (rows.Int(row, 1) != rows.Int(row, 2)) {
    found.quiet = QuietHours{static_cast<int>(rows.Int(row, 1)), static_cast<int>(rows.Int(row, 2)),
                             std::string(rows.Text(row, 3))};
  }
  return found;
}

}  // namespace

Status PostgresLedger::Report(std::span<const Delivery> ends) {
  Columns columns;
  std::vector<std::string_view> sent;
  std::vector<const Delivery*> dead;
  std::vector<const Delivery*> delayed;
  for (const Delivery& end : ends) {
    if (!end.event.user_id.empty()) columns.Add(end);
    if (end.state == MessageState::kSent) sent.emplace_back(end.event.id);
    if (end.state == MessageState::kDead) dead.push_back(&end);
    if (end.state == MessageState::kQueued) delayed.push_back(&end);
  }
  const Micros now = core_->Now();
  std::vector<Core::Ask> asks;
  asks.emplace_back(kReport, columns.ToParams(now));
  if (!sent.empty()) asks.emplace_back(kForgetDead, std::move(Params().TextArray(sent)));
  if (!dead.empty()) asks.emplace_back(kKeepDead, DeadParams(dead, now));
  if (!delayed.empty()) asks.emplace_back(kKeepDelayed, DelayedParams(delayed));
  return core_->SendTogether(std::move(asks));
}

void PostgresLedger::NoteFailure(const Delivery& failure) {
  Columns columns;
  columns.Add(failure);
  core_->Send(kReport, columns.ToParams(core_->Now()), [](const Answer&) {});
}

Result<std::unordered_map<std::string, Preferences>> PostgresLedger::PreferencesOf(
    std::span<const std::string> users) {
  const Answer answer =
      core_->SendAndWait(kFindPreferences, std::move(Params().TextArray(Views(users))));
  if (!answer.status.ok()) return answer.status.error();
  std::unordered_map<std::string, Preferences> found;
  for (int row = 0; row < answer.rows.size(); ++row) {
    found.emplace(answer.rows.Text(row, 0), ReadPreferences(answer.rows, row));
  }
  return found;
}

void PostgresLedger::FindPreferences(std::string user_id, Done<std::optional<Preferences>> done) {
  const std::string_view users[] = {user_id};
  core_->Send(kFindPreferences, std::move(Params().TextArray(users)),
              [done = std::move(done)](const Answer& answer) {
                if (!answer.status.ok()) return done(answer.status.error());
                if (answer.rows.size() == 0) return done(std::optional<Preferences>());
                done(std::optional<Preferences>(ReadPreferences(answer.rows, 0)));
              });
}

Result<std::unordered_set<std::string>> PostgresLedger::Settled(
    std::span<const std::string> event_ids) {
  const Answer answer =
      core_->SendAndWait(kFindSettled, std::move(Params().TextArray(Views(event_ids))));
  if (!answer.status.ok()) return answer.status.error();
  std::unordered_set<std::string> sent;
  for (int row = 0; row < answer.rows.size(); ++row) sent.emplace(answer.rows.Text(row, 0));
  return sent;
}

Result<DeliveryLog::Due> PostgresLedger::TakeDue(Micros now, std::size_t max) {
  Due due{.events = {}, .lease = now + kDueLease};
  Params params;
  params.Int(now).Int(static_cast<std::int64_t>(max)).Int(due.lease).Int(now + kLongestDelay);
  const Answer answer = core_->SendAndWait(kTakeDue, std::move(params));
  if (!answer.status.ok()) return answer.status.error();
  for (int row = 0; row < answer.rows.size(); ++row)
    due.events.emplace_back(answer.rows.Text(row, 0));
  return due;
}

Status PostgresLedger::Forget(std::span<const std::string> event_ids, Micros lease) {
  return core_
      ->SendAndWait(kForgetDelayed, std::move(Params().TextArray(Views(event_ids)).Int(lease)))
      .status;
}

}  // namespace weir::notify::postgres
