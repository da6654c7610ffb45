#include "notify/sqlite/batch.h"

#include <utility>

#include "notify/sqlite/sql.h"

namespace weir::notify::sqlite {

using weir::sqlite::Connection;
using weir::sqlite::Statement;

Result<std::optional<UserLimit>> ReadLimit(Connection& connection, std::string_view user_id) {
  Result<Statement> query = connection.Prepare(kReadLimit);
  if (!query.ok()) return query.error();
  Result<bool> row = query->Bind(1, user_id).Step();
  if (!row.ok()) return row.error();
  if (!*row) return std::optional<UserLimit>();
  return std::optional<UserLimit>(
      UserLimit{std::string(user_id), query->Int(0), query->Int(1), query->Int(2), query->Int(3)});
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
    // Half a batch must not be written: the job is undone and everybody told.
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
  Result<Statement> query = connection_.Prepare(kFindKey);
  if (!query.ok()) return query.error();
  query->Bind(1, request.user_id).Bind(2, request.idempotency_key).Bind(3, now_ - kKeyLifetime);
  Result<bool> row = query->Step();
  if (!row.ok()) return row.error();
  if (!*row) return std::optional<SendAnswer>();
  if (query->Int(0) != MessageDigest(request)) {
    return std::optional(SendAnswer{.outcome = Outcome::kKeyReused});
  }
  return std::optional(SendAnswer{.outcome = Outcome::kSent,
                                  .event_id = std::string(query->Text(1)),
                                  .replayed = true,
                                  .rate_limit = query->Int(2),
                                  .remaining = query->Int(3),
                                  .resets_at = query->Int(4)});
}

Status Batch::PutKey(const SendRequest& request, const SendAnswer& answer) {
  Result<Statement> put = connection_.Prepare(kPutKey);
  if (!put.ok()) return put.error();
  put->Bind(1, request.user_id).Bind(2, request.idempotency_key);
  put->Bind(3, MessageDigest(request)).Bind(4, answer.event_id);
  put->Bind(5, answer.rate_limit).Bind(6, answer.remaining).Bind(7, answer.resets_at).Bind(8, now_);
  return put->Run();
}

Status Batch::PutEvent(const Event& event) {
  Result<Statement> put = connection_.Prepare(kPutEvent);
  if (!put.ok()) return put.error();
  ++stored_;
  if (Status s = put->Bind(1, EncodeEvent(event)).Run(); !s.ok()) return s;
  // An id that comes again is that of a key, used again after a day at the latest: the same
  // message.
  Result<Statement> note = connection_.Prepare(kPutMessage);
  if (!note.ok()) return note.error();
  note->Bind(1, event.id).Bind(2, event.user_id).Bind(3, event.channel).Bind(4, event.recipient);
  return note->Bind(5, now_).Run();
}

Status Batch::WriteCounts() {
  Result<Statement> put = connection_.Prepare(kWriteCounts);
  if (!put.ok()) return put.error();
  for (const auto& [user, tally] : tallies_) {
    if (!tally || !tally->changed()) continue;
    put->Bind(1, user).Bind(2, tally->count()).Bind(3, tally->row().last_refresh_time);
    if (Status s = put->Run(); !s.ok()) return s;
  }
  return {};
}

}  // namespace weir::notify::sqlite
