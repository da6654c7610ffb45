#include "notify/postgres/ledger.h"

#include <future>

#include "base/blocking.h"
#include "notify/postgres/ledger_core.h"
#include "notify/postgres/sql.h"
#include "notify/postgres/transaction.h"

namespace weir::notify::postgres {
namespace {

using weir::postgres::Answer;
using weir::postgres::Connection;
using weir::postgres::Params;
using weir::postgres::Rows;

constexpr std::chrono::seconds kTablesTimeout{3};
constexpr unsigned kPingsPerCount = 3;

std::string TextAt(const Rows& rows, int row, int column) {
  return std::string(rows.Text(row, column));
}

Message ReadMessage(const Rows& rows, int row) {
  return {.accepted = {TextAt(rows, row, 0), TextAt(rows, row, 1), TextAt(rows, row, 2),
                       TextAt(rows, row, 3), rows.Int(row, 7)},
          .state = static_cast<MessageState>(rows.Int(row, 4)),
          .attempts = rows.Int(row, 5),
          .last_error = TextAt(rows, row, 6),
          .updated_at = rows.Int(row, 8),
          .not_before = rows.Int(row, 9)};
}

DeadMessage ReadDead(const Rows& rows, int row) {
  return {TextAt(rows, row, 0), TextAt(rows, row, 1), TextAt(rows, row, 2),
          TextAt(rows, row, 3), rows.Int(row, 4),     rows.Int(row, 5)};
}

/// Passes the rows of an answer to `done`.
template <typename T, typename ReadRow>
auto All(ReadRow read, Ledger::Done<std::vector<T>> done) {
  return [read, done = std::move(done)](const Answer& answer) {
    if (!answer.status.ok()) return done(answer.status.error());
    std::vector<T> rows;
    for (int row = 0; row < answer.rows.size(); ++row) rows.push_back(read(answer.rows, row));
    done(std::move(rows));
  };
}

template <typename T, typename ReadRow>
auto One(ReadRow read, Ledger::Done<std::optional<T>> done) {
  return [read, done = std::move(done)](const Answer& answer) {
    if (!answer.status.ok()) return done(answer.status.error());
    done(answer.rows.size() == 0 ? std::optional<T>() : std::optional<T>(read(answer.rows, 0)));
  };
}

}  // namespace

PostgresLedger::Core::Core(LedgerOptions options, Publisher* publisher, const Clock& clock)
    : options_(std::move(options)),
      publisher_(publisher),
      clock_(clock),
      worker_({.connection = {.url = options_.url,
                              .connect_timeout = options_.statement_timeout,
                              .statement_timeout = options_.statement_timeout,
                              .reconnect_delay = std::chrono::milliseconds(50)},
               .component = "notify",
               .steps = Migrations(),
               .migrate_timeout = kTablesTimeout}),
      ping_timer_(worker_.io()) {}

void PostgresLedger::Core::Open() {
  worker_.Post([this] { Ping(); });
  worker_.Start();
}

void PostgresLedger::Core::Close() {
  worker_.Close([this] {
    closed_ = true;
    ping_timer_.cancel();
  });
}

Status PostgresLedger::Core::Ready() {
  if (closed_) return Error{Code::kUnavailable, "the ledger is closing"};
  Status made = worker_.Ready();
  if (made.ok()) return made;
  up_.store(false, std::memory_order_relaxed);
  return Error{Code::kUnavailable,
               "PostgreSQL is temporarily unavailable: " + made.error().message};
}

void PostgresLedger::Core::SendHere(const char* sql, Params params, Told told) {
  if (Status ready = Ready(); !ready.ok()) return told({.status = ready.error()});
  worker_.connection(0).Send(sql, std::move(params), [this, told = std::move(told)](Answer answer) {
    // An error from the server is an answer, too.
    up_.store(answer.status.ok() || !answer.sqlstate.empty(), std::memory_order_relaxed);
    if (!answer.status.ok()) answer.status = Unavailable(answer);
    told(std::move(answer));
  });
}

void PostgresLedger::Core::Send(const char* sql, Params params, Told told) {
  worker_.Post([this, sql, params = std::move(params), told = std::move(told)]() mutable {
    SendHere(sql, std::move(params), std::move(told));
  });
}

Answer PostgresLedger::Core::SendAndWait(const char* sql, Params params) {
  MayBlock("a report to PostgreSQL");
  auto promise = std::make_shared<std::promise<Answer>>();
  std::future<Answer> answer = promise->get_future();
  Send(sql, std::move(params), [promise](Answer given) { promise->set_value(std::move(given)); });
  return answer.get();
}

Status PostgresLedger::Core::SendTogether(std::vector<Ask> asks) {
  MayBlock("a report to PostgreSQL");
  struct Progress {
    std::promise<Status> told;
    std::size_t left;
    Status status;
  };
  auto progress = std::make_shared<Progress>();
  progress->left = asks.size();
  std::future<Status> done = progress->told.get_future();
  worker_.Post([this, progress, asks = std::move(asks)]() mutable {
    if (Status ready = Ready(); !ready.ok()) return progress->told.set_value(ready.error());
    std::vector<Connection::Query> group;
    for (Ask& ask : asks) {
      group.push_back({ask.first, std::move(ask.second), [progress](const Answer& answer) {
                         if (!answer.status.ok() && progress->status.ok()) {
                           progress->status = Unavailable(answer);
                         }
                         if (--progress->left == 0) progress->told.set_value(progress->status);
                       }});
    }
    worker_.connection(0).SendGroup(std::move(group));
  });
  return done.get();
}

// Keeps up() up to date, and returns what a replay that died had claimed.
void PostgresLedger::Core::Ping() {
  if (closed_) return;
  SendHere(kReturnExpired, std::move(Params().Int(Now())), [](const Answer&) {});
  if (options_.counts && pings_++ % kPingsPerCount == 0) {
    CountDead();
    SumSenders();
  }
  ping_timer_.expires_after(options_.ping_interval);
  ping_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) Ping();
  });
}

void PostgresLedger::Core::CountDead() {
  SendHere(kCountDead, std::move(Params().Int(kMaxCountedDead)), [this](const Answer& answer) {
    if (!answer.status.ok()) return;  // keeps the last count
    dead_.store(static_cast<std::uint64_t>(answer.rows.Int(0, 0)), std::memory_order_relaxed);
  });
}

PostgresLedger::PostgresLedger(LedgerOptions options, Publisher* publisher, const Clock& clock)
    : core_(std::make_shared<Core>(std::move(options), publisher, clock)) {
  core_->Open();
}

PostgresLedger::~PostgresLedger() { core_->Close(); }

bool PostgresLedger::up() const noexcept { return core_->up(); }

std::uint64_t PostgresLedger::dead_letters() const noexcept { return core_->dead_letters(); }

void PostgresLedger::Find(std::string event_id, Done<std::optional<Message>> done) {
  core_->Send(kFindMessage, std::move(Params().Text(event_id)),
              One<Message>(ReadMessage, std::move(done)));
}

void PostgresLedger::List(MessageQuery query, Done<std::vector<Message>> done) {
  Params params;
  params.Text(query.user_id).Int(query.state ? static_cast<std::int64_t>(*query.state) : -1);
  params.Int(query.before_time).Text(query.before_id).Int(static_cast<std::int64_t>(query.limit));
  core_->Send(query.user_id.empty() ? kListMessagesOfState : kListMessagesOfUser, std::move(params),
              All<Message>(ReadMessage, std::move(done)));
}

void PostgresLedger::ListDead(DeadQuery query, Done<std::vector<DeadMessage>> done) {
  Params params;
  params.Text(query.user_id).Int(query.after_time).Text(query.after_id);
  params.Int(static_cast<std::int64_t>(query.limit));
  if (query.user_id.empty()) params.Int(query.events_only ? 1 : 0);
  core_->Send(query.user_id.empty() ? kListDead : kListDeadOfUser, std::move(params),
              All<DeadMessage>(ReadDead, std::move(done)));
}

void PostgresLedger::FindDead(std::string event_id, Done<std::optional<DeadMessage>> done) {
  core_->Send(kFindDead, std::move(Params().Text(event_id)),
              One<DeadMessage>(ReadDead, std::move(done)));
}

void PostgresLedger::Drop(std::vector<std::string> event_ids, Done<std::vector<std::string>> done) {
  const std::vector<std::string_view> ids(event_ids.begin(), event_ids.end());
  core_->Send(kDropDead, std::move(Params().TextArray(ids).Int(core_->Now())),
              All<std::string>([](const Rows& rows, int row) { return TextAt(rows, row, 0); },
                               std::move(done)));
}

void PostgresLedger::Replay(std::vector<std::string> event_ids,
                            Done<std::vector<std::string>> done) {
  core_->Replay(std::move(event_ids), std::move(done));
}

void PostgresLedger::ListUsers(std::string after, std::size_t limit,
                               Done<std::vector<UserLimit>> done) {
  core_->Send(kListUsers, std::move(Params().Text(after).Int(static_cast<std::int64_t>(limit))),
              All<UserLimit>(ReadLimit, std::move(done)));
}

void PostgresLedger::PutPreferences(Preferences preferences, Done<Preferences> done) {
  const QuietHours quiet = preferences.quiet.value_or(QuietHours{});
  Params params;
  params.Text(preferences.user_id).Int(quiet.from).Int(quiet.to).Text(quiet.zone);
  params.Text(JoinChannels(preferences.opted_out));
  core_->Send(kPutPreferences, std::move(params),
              [preferences, done = std::move(done)](const Answer& answer) {
                if (!answer.status.ok()) return done(answer.status.error());
                done(preferences);
              });
}

}  // namespace weir::notify::postgres
