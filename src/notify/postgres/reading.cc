// Reads rows of the tables, and makes parameters of the statements and errors.

#include "notify/postgres/transaction.h"

namespace weir::notify::postgres {

using weir::postgres::Answer;
using weir::postgres::Params;
using weir::postgres::Rows;

UserLimit ReadLimit(const Rows& rows, int row) {
  return {std::string(rows.Text(row, 0)), rows.Int(row, 1), rows.Int(row, 2), rows.Int(row, 3),
          rows.Int(row, 4)};
}

KeyedSend ReadKeyed(const Rows& rows, int row) {
  KeyedSend keyed{
      std::string(rows.Text(row, 0)), std::string(rows.Text(row, 1)), rows.Int(row, 2), {}};
  keyed.answer = {.outcome = Outcome::kSent,
                  .event_id = std::string(rows.Text(row, 3)),
                  .replayed = true,
                  .rate_limit = rows.Int(row, 4),
                  .remaining = rows.Int(row, 5),
                  .resets_at = rows.Int(row, 6)};
  return keyed;
}

Params KeyParams(const std::vector<KeyedSend>& keyed, Micros now) {
  std::vector<std::string_view> users;
  std::vector<std::string_view> keys;
  std::vector<std::int64_t> digests;
  std::vector<std::string_view> events;
  std::vector<std::int64_t> limits;
  std::vector<std::int64_t> remaining;
  std::vector<std::int64_t> resets;
  for (const KeyedSend& one : keyed) {
    users.emplace_back(one.user_id);
    keys.emplace_back(one.key);
    digests.push_back(one.digest);
    events.emplace_back(one.answer.event_id);
    limits.push_back(one.answer.rate_limit);
    remaining.push_back(one.answer.remaining);
    resets.push_back(one.answer.resets_at);
  }
  Params params;
  params.TextArray(users).TextArray(keys).IntArray(digests).TextArray(events);
  params.IntArray(limits).IntArray(remaining).IntArray(resets).Int(now);
  return params;
}

Params MessageParams(const std::vector<Accepted>& accepted) {
  std::vector<std::string_view> ids;
  std::vector<std::string_view> users;
  std::vector<std::string_view> channels;
  std::vector<std::string_view> recipients;
  std::vector<std::int64_t> times;
  for (const Accepted& one : accepted) {
    ids.emplace_back(one.event_id);
    users.emplace_back(one.user_id);
    channels.emplace_back(one.channel);
    recipients.emplace_back(one.recipient);
    times.push_back(one.at);
  }
  Params params;
  params.TextArray(ids).TextArray(users).TextArray(channels).TextArray(recipients).IntArray(times);
  return params;
}

Error Unavailable(const Answer& answer) {
  if (answer.sqlstate == "55P03") {
    return {Code::kUnavailable,
            "PostgreSQL is temporarily unavailable: the user's row stayed locked too long"};
  }
  return {Code::kUnavailable,
          "PostgreSQL is temporarily unavailable: " + answer.status.error().message};
}

}  // namespace weir::notify::postgres
