#include "notify/postgres/transaction.h"

#include <algorithm>
#include <utility>

#include "notify/postgres/sql.h"

namespace weir::notify::postgres {
namespace {

using weir::postgres::Answer;
using weir::postgres::Params;
using weir::postgres::Rows;

std::string KeyOf(const std::string& user, const std::string& key) { return user + '\0' + key; }

Error KafkaError(const Error& error) {
  return {Code::kUnavailable, "Kafka is temporarily unavailable: " + error.message};
}

}  // namespace

Transaction::Transaction(std::shared_ptr<const TransactionParts> parts,
                         weir::postgres::Connection& connection, std::vector<Ask> asks,
                         std::function<void()> ended)
    : parts_(std::move(parts)), connection_(connection), ended_(std::move(ended)) {
  items_.reserve(asks.size());
  for (Ask& ask : asks) {
    std::string channel = ChannelKey(ask.request.user_id, ask.request.channel);
    items_.push_back({.ask = std::move(ask), .channel_key = std::move(channel)});
  }
}

void Transaction::Start() { Lock(); }

// All in one round trip. Statements sent together run in one session, so either the transaction
// covers all of them or one of the answers is an error.
void Transaction::Lock() {
  std::vector<std::string_view> users;
  std::vector<std::string_view> key_users;
  std::vector<std::string_view> keys;
  for (const Item& item : items_) {
    users.emplace_back(item.ask.request.user_id);
    users.emplace_back(item.channel_key);
    if (item.ask.request.idempotency_key.empty()) continue;
    key_users.emplace_back(item.ask.request.user_id);
    keys.emplace_back(item.ask.request.idempotency_key);
  }
  std::sort(users.begin(), users.end());
  users.erase(std::unique(users.begin(), users.end()), users.end());

  outstanding_ = keys.empty() ? 3 : 4;
  const auto self = shared_from_this();
  const auto plain = [self](Answer answer) { self->Take(std::move(answer)); };
  connection_.Send("BEGIN", {}, plain);
  connection_.Send(
      kBounds,
      std::move(Params()
                    .Text(std::to_string(parts_->options.lock_timeout.count()))
                    .Text(std::to_string(4 * parts_->options.statement_timeout.count()))),
      plain);
  connection_.Send(kLockRows, std::move(Params().TextArray(users)), [self](Answer answer) {
    if (answer.status.ok()) self->ReadRows(answer.rows);
    self->Take(std::move(answer));
  });
  if (keys.empty()) return;
  const Micros oldest = NowMicros(parts_->clock) - kKeyLifetime;
  connection_.Send(kFindKeys, std::move(Params().TextArray(key_users).TextArray(keys).Int(oldest)),
                   [self](Answer answer) {
                     if (answer.status.ok()) self->ReadKeys(answer.rows);
                     self->Take(std::move(answer));
                   });
}

void Transaction::Take(Answer answer) {
  if (!answer.status.ok() && !error_) error_ = Unavailable(answer);
  if (--outstanding_ > 0) return;
  if (error_) return Abandon(*error_);
  Decide();
}

void Transaction::ReadRows(const Rows& rows) {
  // After the locks: no row can have been refreshed later than this.
  now_ = NowMicros(parts_->clock);
  std::unordered_map<std::string_view, UserLimit> limits;
  for (int row = 0; row < rows.size(); ++row) {
    backend_ = rows.Int(row, 5);
    limits.emplace(rows.Text(row, 0), ReadLimit(rows, row));
  }
  for (const Item& item : items_) {
    for (const std::string* name : {&item.ask.request.user_id, &item.channel_key}) {
      const auto found = limits.find(*name);
      if (found != limits.end()) tallies_.try_emplace(*name, found->second, now_);
    }
  }
}

std::optional<Places> Transaction::PlacesOf(const Item& item) {
  const auto user = tallies_.find(item.ask.request.user_id);
  if (user == tallies_.end()) return std::nullopt;
  const auto channel = tallies_.find(item.channel_key);
  return Places(user->second, channel == tallies_.end() ? nullptr : &channel->second);
}

void Transaction::ReadKeys(const Rows& rows) {
  for (int row = 0; row < rows.size(); ++row) {
    KeyedSend keyed = ReadKeyed(rows, row);
    std::string key = KeyOf(keyed.user_id, keyed.key);
    known_keys_.emplace(std::move(key), std::move(keyed));
  }
}

void Transaction::Decide() {
  for (std::size_t i = 0; i < items_.size(); ++i) {
    Item& item = items_[i];
    const SendRequest& request = item.ask.request;
    std::optional<Places> places = PlacesOf(item);
    if (!places) {
      item.state = State::kAnswered;
      item.answer = SendAnswer{.outcome = Outcome::kUnknownUser};
      continue;
    }
    if (!request.idempotency_key.empty() && DecideByKey(i)) continue;
    // A refusal may still turn out to be wrong: see Settle.
    if (!places->Take()) continue;
    item.state = State::kPublished;
    events_.push_back(MakeEvent(request, now_));
    item.event_id = events_.back().id;
    to_publish_.push_back(i);
  }
  if (events_.empty()) {
    Undo();
    return Settle();
  }
  Publish();
}

bool Transaction::DecideByKey(std::size_t index) {
  Item& item = items_[index];
  const SendRequest& request = item.ask.request;
  const std::string key = KeyOf(request.user_id, request.idempotency_key);
  if (const auto known = known_keys_.find(key); known != known_keys_.end()) {
    item.state = State::kAnswered;
    item.answer = known->second.digest == MessageDigest(request)
                      ? known->second.answer
                      : SendAnswer{.outcome = Outcome::kKeyReused};
    return true;
  }
  const auto [first, fresh] = batch_keys_.try_emplace(key, index);
  if (fresh) return false;
  item.state = State::kRepeat;
  item.first = first->second;
  return true;
}

void Transaction::Publish() {
  parts_->publisher.PublishAll(
      std::move(events_), [self = shared_from_this()](std::vector<Status> statuses) {
        self->parts_->post([self, statuses = std::move(statuses)] { self->Published(statuses); });
      });
}

void Transaction::Published(const std::vector<Status>& statuses) {
  bool any = false;
  for (std::size_t i = 0; i < statuses.size(); ++i) {
    Item& item = items_[to_publish_[i]];
    if (!statuses[i].ok()) {
      item.state = State::kAnswered;
      item.answer = KafkaError(statuses[i].error());
      error_ = item.answer.error();
      continue;
    }
    any = true;
    std::optional<Places> places = PlacesOf(item);
    places->Confirm();
    item.state = State::kConfirmed;
    item.answer = places->Sent(std::move(item.event_id));
  }
  if (!any) return Abandon(*error_);
  Write();
}

void Transaction::Write() {
  std::vector<std::string_view> users;
  std::vector<std::int64_t> counts;
  std::vector<std::int64_t> refreshed;
  for (const auto& [user, tally] : tallies_) {
    if (!tally.changed()) continue;
    users.push_back(user);
    counts.push_back(tally.count());
    refreshed.push_back(tally.row().last_refresh_time);
  }
  rows_to_write_ = static_cast<std::int64_t>(users.size());
  error_.reset();
  outstanding_ = batch_keys_.empty() ? 3 : 4;
  connection_.Send(
      kWriteRows,
      std::move(Params().TextArray(users).IntArray(counts).IntArray(refreshed).Int(backend_)),
      [self = shared_from_this()](Answer answer) {
        if (answer.status.ok() && answer.rows.affected() != self->rows_to_write_) {
          answer.status = Error{Code::kUnavailable, "the connection was lost with its locks"};
        }
        self->Commit(answer);
      });
  WriteMessages();
  if (!batch_keys_.empty()) WriteKeys();
  connection_.Send("COMMIT", {},
                   [self = shared_from_this()](const Answer& answer) { self->Commit(answer); });
}

void Transaction::WriteMessages() {
  std::vector<Accepted> accepted;
  for (const Item& item : items_) {
    if (item.state != State::kConfirmed) continue;
    const SendRequest& request = item.ask.request;
    accepted.push_back(
        {item.answer->event_id, request.user_id, request.channel, request.recipient, now_});
  }
  connection_.Send(kPutMessages, std::move(MessageParams(accepted).Int(backend_)),
                   [self = shared_from_this()](const Answer& answer) { self->Commit(answer); });
}

void Transaction::WriteKeys() {
  std::vector<KeyedSend> keyed;
  for (const auto& [key, index] : batch_keys_) {
    const Item& item = items_[index];
    if (item.state != State::kConfirmed) continue;
    const SendRequest& request = item.ask.request;
    keyed.push_back(
        {request.user_id, request.idempotency_key, MessageDigest(request), *item.answer});
  }
  connection_.Send(kPutKeys, std::move(KeyParams(keyed, now_).Int(backend_)),
                   [self = shared_from_this()](const Answer& answer) { self->Commit(answer); });
}

void Transaction::Commit(const Answer& answer) {
  if (!answer.status.ok() && !error_) error_ = Unavailable(answer);
  if (--outstanding_ > 0) return;
  if (!error_) return Settle();
  // The events are on the topic, and it is unknown whether they were counted.
  Undo();
  for (Item& item : items_) {
    if (item.state == State::kConfirmed) item.answer = *error_;
  }
  Settle();
}

void Transaction::Abandon(const Error& error) {
  Undo();
  error_ = error;
  Settle();
}

void Transaction::Settle() {
  for (Item& item : items_) {
    if (item.state != State::kUndecided) continue;
    const std::optional<Places> places = PlacesOf(item);
    // Full even without what this batch may have failed to count, or full with what it has counted.
    const Tally* const full = places ? places->Full([this](const Tally& window) {
      return window.was_full() || (!error_ && window.full());
    })
                                     : nullptr;
    if (full != nullptr) {
      item.answer = full->Limited();
    } else {
      // Its place was taken by a request that failed later: neither sent nor over the limit.
      item.answer =
          error_ ? *error_ : Error{Code::kUnavailable, "Kafka is temporarily unavailable"};
    }
  }
  for (Item& item : items_) {
    if (item.state != State::kRepeat) continue;
    const Item& first = items_[item.first];
    item.answer = first.answer;
    if (MessageDigest(first.ask.request) != MessageDigest(item.ask.request)) {
      item.answer = SendAnswer{.outcome = Outcome::kKeyReused};
    } else if (item.answer.ok()) {
      item.answer->replayed = item.answer->outcome == Outcome::kSent;
    }
  }
  End();
}

void Transaction::Undo() {
  if (!parts_->closed) connection_.Send("ROLLBACK", {}, [](Answer) {});
}

void Transaction::End() {
  ended_();
  for (Item& item : items_) item.ask.done(std::move(item.answer));
}

}  // namespace weir::notify::postgres
