#include "notify/sqlite/batch.h"

#include <utility>

#include "notify/sqlite/sql.h"

namespace weir::notify::sqlite {

using weir::sqlite::Connection;
using weir::sqlite::Statement;

Result<std::optional<UserLimit>> ReadLimit(Connection& connection, std::string_view user_id) {
  return connection.ReadFirst(
      kReadLimit,
      [&](const Statement& row) {
        return UserLimit{std::string(user_id), row.Int(0), row.Int(1), row.Int(2), row.Int(3)};
      },
      user_id);
}

Result<std::vector<Result<SendAnswer>>> Batch::Decide(std::span<const SendRequest* const> requests,
                                                      std::size_t room) {
  std::vector<Result<SendAnswer>> answers;
  answers.reserve(requests.size());
  for (const SendRequest* request : requests) {
    if (stored_ >= room) {
      answers.emplace_back(
          Error{Code::kUnavailable, "the outbox is temporarily unavailable: it is full"});
      continue;
    }
    Result<SendAnswer> answer = DecideOne(*request);
    // Half a batch must not be written: the job is rolled back and all requests get the error.
    if (!answer.ok()) return answer.error();
    answers.push_back(std::move(answer));
  }
  if (Status s = WriteCounts(); !s.ok()) return s.error();
  return answers;
}

Result<Tally*> Batch::TallyOf(const std::string& user_id) {
  const auto [entry, fresh] = tallies_.try_emplace(user_id);
  if (fresh) {
    Result<std::optional<UserLimit>> row = ReadLimit(connection_, user_id);
    if (!row.ok()) return row.error();
    if (row->has_value()) entry->second.emplace(std::move(**row), now_);
  }
  return entry->second ? &*entry->second : nullptr;
}

Result<SendAnswer> Batch::DecideOne(const SendRequest& request) {
  Result<Tally*> tally = TallyOf(request.user_id);
  if (!tally.ok()) return tally.error();
  if (*tally == nullptr) return SendAnswer{.outcome = Outcome::kUnknownUser};
  if (!request.idempotency_key.empty()) {
    Result<std::optional<SendAnswer>> known = FindKey(request);
    if (!known.ok()) return known.error();
    if (known->has_value()) return std::move(**known);
  }
  Result<Tally*> channel = TallyOf(ChannelKey(request.user_id, request.channel));
  if (!channel.ok()) return channel.error();
  Places places(**tally, *channel);
  if (!places.Take()) {
    return places.Full([](const Tally& window) { return !window.has_room(); })->Limited();
  }
  Event event = MakeEvent(request, now_);
  if (Status s = PutEvent(event); !s.ok()) return s.error();
  places.Confirm();
  SendAnswer answer = places.Sent(std::move(event.id));
  if (!request.idempotency_key.empty()) {
    if (Status s = PutKey(request, answer); !s.ok()) return s.error();
  }
  return answer;
}

Result<std::optional<SendAnswer>> Batch::FindKey(const SendRequest& request) {
  return connection_.ReadFirst(
      kFindKey,
      [&](const Statement& row) {
        if (row.Int(0) != MessageDigest(request)) return SendAnswer{.outcome = Outcome::kKeyReused};
        return SendAnswer{.outcome = Outcome::kSent,
                          .event_id = std::string(row.Text(1)),
                          .replayed = true,
                          .rate_limit = row.Int(2),
                          .remaining = row.Int(3),
                          .resets_at = row.Int(4)};
      },
      request.user_id, request.idempotency_key, now_ - kKeyLifetime);
}

Status Batch::PutKey(const SendRequest& request, const SendAnswer& answer) {
  return connection_.Run(kPutKey, request.user_id, request.idempotency_key, MessageDigest(request),
                         answer.event_id, answer.rate_limit, answer.remaining, answer.resets_at,
                         now_);
}

Status Batch::PutEvent(const Event& event) {
  ++stored_;
  if (Status s = connection_.Run(kPutEvent, EncodeEvent(event)); !s.ok()) return s;
  // An ID that occurs again comes from a key used again after a day at the latest: the same
  // message.
  return connection_.Run(kPutMessage, event.id, event.user_id, event.channel, event.recipient,
                         now_);
}

Status Batch::WriteCounts() {
  for (const auto& [user, tally] : tallies_) {
    if (!tally || !tally->changed()) continue;
    Status s = connection_.Run(kWriteCounts, user, tally->count(), tally->row().last_refresh_time);
    if (!s.ok()) return s;
  }
  return {};
}

}  // namespace weir::notify::sqlite
