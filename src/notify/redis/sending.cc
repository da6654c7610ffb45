// The path of a request: joined to one with the same key, decided by Redis or by the fallback,
// published, confirmed, answered.

#include <utility>

#include "notify/redis/gateway.h"

namespace weir::notify::redis {

void RedisGateway::Send(SendRequest request, Done<SendAnswer> done) {
  Post([this, request = std::move(request), done = std::move(done)]() mutable {
    Begin(std::move(request), std::move(done));
  });
}

void RedisGateway::Begin(SendRequest send, Done<SendAnswer> done) {
  if (waiting_.load(std::memory_order_relaxed) >= options_.max_waiting) {
    return done(Error{Code::kUnavailable, "too many sends are waiting; try again"});
  }
  waiting_.fetch_add(1, std::memory_order_relaxed);
  auto request = std::make_shared<Request>();
  request->send = std::move(send);
  request->done = std::move(done);
  if (!request->send.idempotency_key.empty()) {
    request->send_key = SendKey(request->send.user_id, request->send.idempotency_key);
    request->digest = MessageDigest(request->send);
    if (JoinSameKey(*request)) return;
    by_key_.emplace(request->send_key, request);
  }
  request->accepted_at = Now();
  request->event = MakeEvent(request->send, request->accepted_at);
  Submit(request);
}

bool RedisGateway::JoinSameKey(Request& request) {
  const auto first = by_key_.find(request.send_key);
  if (first == by_key_.end()) return false;
  first->second->same_key.emplace_back(request.digest, std::move(request.done));
  return true;
}

void RedisGateway::Submit(const RequestPtr& request) {
  switch (state_) {
    case State::kDown:
      return Fallback(request);
    case State::kFalling:
    case State::kRecovering:
      held_.push_back(request);
      return;
    case State::kUp:
      break;
  }
  if (!connection_->connected()) {
    // The next answer may come from another server, or from the same one with older data.
    held_.push_back(request);
    return GoDown({Code::kUnavailable, "the connection was lost"});
  }
  if (sync_.messages() >= options_.max_unsynced) {
    return Answer(request, Error{Code::kUnavailable,
                                 "PostgreSQL is temporarily unavailable: too many sends are not "
                                 "written there yet"});
  }
  if (!request->send_key.empty() && !request->key_checked && Now() < keys_elsewhere_until_) {
    return CheckKey(request);
  }
  Take(request);
}

void RedisGateway::CheckKey(const RequestPtr& request) {
  store_.FindKey(request->send.user_id, request->send.idempotency_key, Now(),
                 [weak = weak_from_this(), request](Result<std::optional<KeyedSend>> found) {
                   const auto self = weak.lock();
                   if (!self) return;
                   self->Post([core = self.get(), request, found = std::move(found)] {
                     if (core->closed_) return;
                     if (!found.ok()) return core->Answer(request, found.error());
                     if (!found->has_value()) {
                       request->key_checked = true;
                       return core->Submit(request);
                     }
                     core->Answer(request, (*found)->digest == request->digest
                                               ? (*found)->answer
                                               : SendAnswer{.outcome = Outcome::kKeyReused});
                   });
                 });
}

void RedisGateway::Take(const RequestPtr& request) {
  ++in_redis_;
  TakeScript().Call(*connection_,
                    TakeArguments(request->send.user_id, request->send_key, Now(), run_,
                                  request->digest, request->event.id),
                    [this, request](const weir::redis::Answer& answer) {
                      Result<Taken> taken = answer.status.ok()
                                                ? ReadTaken(answer.reply)
                                                : Result<Taken>(answer.status.error());
                      if (taken.ok()) return Took(request, *taken);
                      --in_redis_;
                      if (closed_) return Answer(request, taken.error());
                      // It may have been counted there; it is not sent from there.
                      held_.push_back(request);
                      GoDown(taken.error());
                      if (state_ == State::kDown) return Release();
                      MaybeFallen();
                    });
}

void RedisGateway::Took(const RequestPtr& request, const Taken& taken) {
  if (taken.kind == Taken::Kind::kAllowed) {
    return Publish(request, taken.window_start,
                   {.outcome = Outcome::kSent,
                    .event_id = request->event.id,
                    .rate_limit = taken.rate_limit,
                    .remaining = taken.remaining,
                    .resets_at = taken.window_end});
  }
  if (taken.kind == Taken::Kind::kSeen) return Seen(request, taken.seen);
  --in_redis_;
  if (taken.kind == Taken::Kind::kMiss) {
    Miss(request);
  } else if (taken.kind == Taken::Kind::kTable) {
    Fallback(request);
  } else {
    Answer(request, SendAnswer{.outcome = Outcome::kLimited,
                               .rate_limit = taken.rate_limit,
                               .resets_at = taken.window_end});
  }
  MaybeFallen();
}

void RedisGateway::Seen(const RequestPtr& request, const std::string& text) {
  Result<Remembered> send = Decode(text);
  if (send.ok() && send->digest == request->digest && !send->confirmed) {
    // Counted then, but not confirmed: publishes the same event again.
    request->event.id = send->answer.event_id;
    send->answer.replayed = false;
    return Publish(request, send->window_start, send->answer);
  }
  --in_redis_;
  if (!send.ok()) {
    Answer(request, send.error());
  } else if (send->digest != request->digest) {
    Answer(request, SendAnswer{.outcome = Outcome::kKeyReused});
  } else {
    Answer(request, send->answer);
  }
  MaybeFallen();
}

void RedisGateway::Publish(const RequestPtr& request, Micros window_start,
                           const SendAnswer& answer) {
  sync_.Begin(request->send.user_id);
  publisher_.Publish(std::move(request->event), [weak = weak_from_this(), request, window_start,
                                                 answer](Status status) {
    const auto self = weak.lock();
    if (!self) return;
    self->Post([core = self.get(), request, window_start, answer, status = std::move(status)] {
      core->Published(request, window_start, answer, status);
    });
  });
}

void RedisGateway::Published(const RequestPtr& request, Micros window_start,
                             const SendAnswer& answer, const Status& status) {
  if (closed_) return;
  --in_redis_;
  if (status.ok()) {
    sync_.Confirm(request->send.user_id, window_start);
    sync_.Accept({answer.event_id, request->send.user_id, request->send.channel,
                  request->send.recipient, request->accepted_at});
    if (!request->send_key.empty()) Remember(*request, window_start, answer);
    ScheduleSync();
    Answer(request, answer);
  } else {
    // Returning the place could let another request exceed the cap; it stays counted.
    sync_.Fail(request->send.user_id);
    Answer(request, Error{Code::kUnavailable,
                          "Kafka is temporarily unavailable: " + status.error().message});
  }
  MaybeFallen();
  StartLoads();
}

void RedisGateway::Remember(const Request& request, Micros window_start, const SendAnswer& answer) {
  sync_.Remember({request.send.user_id, request.send.idempotency_key, request.digest, answer});
  if (!connection_->connected()) return;
  const std::string text = Encode({request.digest, true, window_start, answer});
  // If this is lost, a repeated request publishes the same event again, uncounted.
  connection_->Send(weir::redis::Command{"SET", request.send_key, text, "XX", "KEEPTTL"},
                    [](const weir::redis::Answer&) {});
}

void RedisGateway::Fallback(const RequestPtr& request) {
  ++in_fallback_;
  fallback_.Send(request->send, [weak = weak_from_this(), request](Result<SendAnswer> answer) {
    const auto self = weak.lock();
    if (!self) return;
    self->Post([core = self.get(), request, answer = std::move(answer)] {
      if (core->closed_) return;
      --core->in_fallback_;
      if (!answer.ok() || answer->outcome == Outcome::kSent) {
        core->dirty_.insert(request->send.user_id);
        // The table has the key, Redis does not.
        if (!request->send_key.empty()) core->keys_elsewhere_until_ = core->Now() + kKeyLifetime;
      }
      core->Answer(request, answer);
      core->MaybeRecovered();
    });
  });
}

void RedisGateway::Answer(const RequestPtr& request, const Result<SendAnswer>& answer) {
  if (!request->send_key.empty()) by_key_.erase(request->send_key);
  waiting_.fetch_sub(1 + request->same_key.size(), std::memory_order_relaxed);
  request->done(answer);
  for (auto& [digest, done] : request->same_key) {
    if (answer.ok() && digest != request->digest) {
      done(SendAnswer{.outcome = Outcome::kKeyReused});
      continue;
    }
    Result<SendAnswer> same = answer;
    if (same.ok() && same->outcome == Outcome::kSent) same->replayed = true;
    done(std::move(same));
  }
}

}  // namespace weir::notify::redis
