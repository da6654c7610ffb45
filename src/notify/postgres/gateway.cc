#include "notify/postgres/gateway.h"

#include <unordered_map>
#include <utility>

#include "notify/postgres/sql.h"
#include "notify/postgres/worker.h"

namespace weir::notify::postgres {
namespace {

using weir::postgres::Params;
using weir::postgres::Rows;
using PgAnswer = weir::postgres::Answer;
using Limits = std::vector<std::optional<UserLimit>>;

Limits InOrder(const std::vector<std::string>& users, const Rows& found) {
  std::unordered_map<std::string, UserLimit> limits;
  for (int row = 0; row < found.size(); ++row) {
    UserLimit limit = ReadLimit(found, row);
    limit.has_channels = found.Int(row, 6) != 0;
    std::string user = limit.user_id;
    limits.emplace(std::move(user), std::move(limit));
  }
  Limits rows;
  rows.reserve(users.size());
  for (const std::string& user : users) {
    const auto limit = limits.find(user);
    rows.push_back(limit == limits.end() ? std::nullopt : std::optional(limit->second));
  }
  return rows;
}

Params LimitParams(const UserLimit& limit, const Clock& clock) {
  Params params;
  params.Text(limit.user_id).Int(limit.rate_limit).Int(limit.time_window);
  return std::move(params.Int(NowMicros(clock)));
}

Params UserParams(const std::vector<std::string>& users) {
  const std::vector<std::string_view> names(users.begin(), users.end());
  return std::move(Params().TextArray(names));
}

}  // namespace

PostgresGateway::PostgresGateway(Options options, Publisher& publisher, const Clock& clock)
    : worker_(std::make_shared<Worker>(std::move(options), publisher, clock)) {
  worker_->Open();
}

PostgresGateway::~PostgresGateway() { worker_->Close(); }

std::size_t PostgresGateway::waiting() const { return worker_->waiting(); }

void PostgresGateway::Configure(UserLimit limit, Gateway::Done<UserLimit> done) {
  worker_->Query(&Worker::RunLocking, kPutRow, LimitParams(limit, worker_->clock()),
                 std::move(done), [](const Rows& rows) { return ReadLimit(rows, 0); });
}

void PostgresGateway::Adjust(UserLimit limit, Gateway::Done<UserLimit> done) {
  worker_->Query(&Worker::RunLocking, kAdjustRow, LimitParams(limit, worker_->clock()),
                 std::move(done), [](const Rows& rows) { return ReadLimit(rows, 0); });
}

void PostgresGateway::Ensure(UserLimit limit, Gateway::Done<bool> done) {
  worker_->Query(&Worker::RunLocking, kEnsureRow, LimitParams(limit, worker_->clock()),
                 std::move(done), [](const Rows& rows) { return rows.affected() > 0; });
}

void PostgresGateway::Remove(std::string user_id, Gateway::Done<bool> done) {
  worker_->Query(&Worker::RunLocking, kRemoveRow, std::move(Params().Text(user_id)),
                 std::move(done), [](const Rows& rows) { return rows.size() > 0; });
}

void PostgresGateway::Send(SendRequest request, Gateway::Done<SendAnswer> done) {
  worker_->Post([worker = worker_.get(), ask = Ask{std::move(request), std::move(done)}]() mutable {
    worker->Enqueue(std::move(ask));
  });
}

void PostgresGateway::Find(std::string user_id, Gateway::Done<std::optional<UserLimit>> done) {
  worker_->Query(&Worker::Run, kReadRows, UserParams({user_id}), std::move(done),
                 [](const Rows& rows) {
                   return rows.size() == 0 ? std::nullopt : std::optional(ReadLimit(rows, 0));
                 });
}

void PostgresGateway::Load(std::vector<std::string> users, Micros now,
                           LimitStore::Done<Limits> done) {
  worker_->Post([worker = worker_.get(), users = std::move(users), now, done = std::move(done)] {
    worker->Run(kReadRows, UserParams(users), [worker, users, now, done](PgAnswer answer) {
      if (!answer.status.ok()) return done(Unavailable(answer));
      Limits rows = InOrder(users, answer.rows);
      std::vector<std::string_view> expired;
      std::vector<std::int64_t> windows;
      for (const std::optional<UserLimit>& row : rows) {
        if (!row || !row->Expired(now)) continue;
        expired.emplace_back(row->user_id);
        windows.push_back(row->last_refresh_time);
      }
      if (expired.empty()) return done(std::move(rows));
      // Only windows unchanged since they were read; then reads again, to see who was first.
      Params params = std::move(Params().TextArray(expired).IntArray(windows).Int(now));
      std::vector<std::pair<const char*, Params>> statements;
      statements.emplace_back(kRefreshRows, std::move(params));
      worker->RunTogether(std::move(statements), [worker, users, done](const Status& refreshed) {
        if (!refreshed.ok()) return done(refreshed.error());
        worker->Run(kReadRows, UserParams(users), [users, done](PgAnswer again) {
          if (!again.status.ok()) return done(Unavailable(again));
          done(InOrder(users, again.rows));
        });
      });
    });
  });
}

void PostgresGateway::Add(std::vector<CountDelta> deltas, std::vector<KeyedSend> keyed,
                          std::vector<Accepted> accepted, std::function<void(Status)> done) {
  worker_->Post([worker = worker_.get(), deltas = std::move(deltas), keyed = std::move(keyed),
                 accepted = std::move(accepted), done = std::move(done)] {
    std::vector<std::string_view> users;
    std::vector<std::int64_t> sends;
    std::vector<std::int64_t> windows;
    for (const CountDelta& delta : deltas) {
      users.emplace_back(delta.user_id);
      sends.push_back(delta.sends);
      windows.push_back(delta.window_start);
    }
    std::vector<std::pair<const char*, Params>> statements;
    statements.emplace_back(kAddCounts,
                            std::move(Params().TextArray(users).IntArray(sends).IntArray(windows)));
    if (!keyed.empty()) {
      statements.emplace_back(kPutKeys,
                              std::move(KeyParams(keyed, NowMicros(worker->clock())).Int(0)));
    }
    if (!accepted.empty()) {
      statements.emplace_back(kPutMessages, std::move(MessageParams(accepted).Int(0)));
    }
    worker->RunTogether(std::move(statements), done);
  });
}

void PostgresGateway::FindKey(std::string user_id, std::string key, Micros now,
                              LimitStore::Done<std::optional<KeyedSend>> done) {
  const std::string_view users[] = {user_id};
  const std::string_view keys[] = {key};
  worker_->Query(&Worker::Run, kFindKeys,
                 std::move(Params().TextArray(users).TextArray(keys).Int(now - kKeyLifetime)),
                 std::move(done), [](const Rows& rows) {
                   return rows.size() == 0 ? std::nullopt : std::optional(ReadKeyed(rows, 0));
                 });
}

}  // namespace weir::notify::postgres
