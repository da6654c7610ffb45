// Users whose hash is missing: their rows are read, without a lock and many at a time, the hashes
// are created, and the rows are read once more. If a configuration was saved between the first read
// and the creation, its DEL came too early; the second read detects it.
//
// A user is not read while sends counted in Redis are missing from the table: the row's count would
// be too low. The user cannot send meanwhile, so this does not last.

#include <utility>

#include "notify/redis/gateway.h"

namespace weir::notify::redis {
namespace {

constexpr std::size_t kMaxUsersInLoad = 500;
constexpr int kMaxLoads = 8;

bool SameConfig(const UserLimit& a, const UserLimit& b) {
  return a.rate_limit == b.rate_limit && a.time_window == b.time_window &&
         a.last_refresh_time == b.last_refresh_time && a.has_channels == b.has_channels;
}

}  // namespace

void RedisGateway::Miss(const RequestPtr& request) {
  if (state_ != State::kUp) return Submit(request);
  if (++request->loads > kMaxLoads) {
    return Answer(request, Error{Code::kUnavailable,
                                 "Redis is temporarily unavailable: it does not keep counts"});
  }
  loads_[request->send.user_id].requests.push_back(request);
  StartLoads();
}

void RedisGateway::StartLoads() {
  if (loading_ || loads_.empty() || state_ != State::kUp) return;
  std::vector<std::string> users;
  std::vector<std::string> hopeless;
  for (const auto& [user, load] : loads_) {
    if (!sync_.HasUnsynced(user)) {
      users.push_back(user);
    } else if (sync_failing_) {
      hopeless.push_back(user);
    }
    if (users.size() == kMaxUsersInLoad) break;
  }
  for (const std::string& user : hopeless) {
    FinishLoad(
        user,
        Error{Code::kUnavailable,
              "PostgreSQL is temporarily unavailable: its counts of the user are not up to date"});
  }
  if (users.empty()) return;
  loading_ = true;
  load_now_ = Now();
  LoadRows(users, &RedisGateway::Loaded);
}

void RedisGateway::LoadRows(const std::vector<std::string>& users, TakeRows take) {
  store_.Load(users, load_now_,
              [weak = weak_from_this(), users, take, round = load_round_](auto rows) {
                const auto self = weak.lock();
                if (!self) return;
                self->Post([core = self.get(), users, take, round, rows = std::move(rows)] {
                  if (!core->closed_ && round == core->load_round_) (core->*take)(users, rows);
                });
              });
}

void RedisGateway::Loaded(const std::vector<std::string>& users,
                          const Result<std::vector<std::optional<UserLimit>>>& rows) {
  if (!rows.ok()) {
    for (const std::string& user : users) FinishLoad(user, rows.error());
    return EndLoads();
  }
  filling_ = 1;
  const std::uint64_t round = load_round_;
  for (std::size_t i = 0; i < users.size() && round == load_round_; ++i) {
    const std::optional<UserLimit>& row = (*rows)[i];
    if (row) {
      Fill(*row);
    } else {
      FinishLoad(users[i], SendAnswer{.outcome = Outcome::kUnknownUser});
    }
  }
  if (round == load_round_) Filled();
}

void RedisGateway::Fill(const UserLimit& row) {
  const auto load = loads_.find(row.user_id);
  if (load == loads_.end()) return;
  load->second.filled = row;
  to_verify_.push_back(row.user_id);
  ++filling_;
  FillScript().Call(*connection_, FillArguments(row, load_now_, run_),
                    [this, round = load_round_](const weir::redis::Answer& answer) {
                      if (closed_ || round != load_round_) return;
                      if (!answer.status.ok()) return GoDown(answer.status.error());
                      Filled();
                    });
}

void RedisGateway::Filled() {
  if (--filling_ > 0) return;
  if (to_verify_.empty()) return EndLoads();
  LoadRows(std::exchange(to_verify_, {}), &RedisGateway::Verified);
}

void RedisGateway::Verified(const std::vector<std::string>& users,
                            const Result<std::vector<std::optional<UserLimit>>>& rows) {
  for (std::size_t i = 0; i < users.size(); ++i) {
    const auto load = loads_.find(users[i]);
    if (load == loads_.end()) continue;
    const bool same =
        rows.ok() && (*rows)[i].has_value() && SameConfig(*(*rows)[i], load->second.filled);
    if (!same && connection_->connected()) {
      connection_->Send(weir::redis::Command{"DEL", CacheKey(users[i])},
                        [this](const weir::redis::Answer& answer) {
                          if (!answer.status.ok()) GoDown(answer.status.error());
                        });
    }
    if (rows.ok()) {
      Retry(users[i]);
    } else {
      FinishLoad(users[i], rows.error());
    }
    if (state_ != State::kUp) return;
  }
  EndLoads();
}

void RedisGateway::EndLoads() {
  loading_ = false;
  StartLoads();
}

void RedisGateway::FinishLoad(const std::string& user, const Result<SendAnswer>& answer) {
  const auto load = loads_.extract(user);
  if (load.empty()) return;
  for (const RequestPtr& request : load.mapped().requests) Answer(request, answer);
}

void RedisGateway::Retry(const std::string& user) {
  const auto load = loads_.extract(user);
  if (load.empty()) return;
  for (const RequestPtr& request : load.mapped().requests) Submit(request);
}

void RedisGateway::HoldLoads() {
  ++load_round_;
  loading_ = false;
  to_verify_.clear();
  for (auto& [user, load] : std::exchange(loads_, {})) {
    for (const RequestPtr& request : load.requests) held_.push_back(request);
  }
}

void RedisGateway::FailLoads(const Error& error) {
  ++load_round_;
  for (auto& [user, load] : std::exchange(loads_, {})) {
    for (const RequestPtr& request : load.requests) Answer(request, error);
  }
}

}  // namespace weir::notify::redis
