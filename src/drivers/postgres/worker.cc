#include "drivers/postgres/worker.h"

#include <algorithm>
#include <utility>

#include "drivers/postgres/sqlstate.h"

namespace weir::postgres {
namespace {

constexpr int kMaxAttempts = 4;
constexpr std::chrono::milliseconds kPause{50};

// The outcome is unknown, or the server reports a rollback; what is repeated is idempotent.
bool MayHelpToRepeat(const Answer& answer) {
  if (answer.status.ok()) return false;
  return answer.sqlstate.empty() || IsRetryable(answer.sqlstate) ||
         answer.sqlstate.starts_with("57P");  // the session was ended, the server stops or starts
}

// The server reports a rollback, or has never received it.
bool IsCertainlyUndone(const Answer& answer) {
  return answer.unsent || IsRetryable(answer.sqlstate);
}

// An error of a change that may have taken effect all the same.
bool IsUnknown(const Answer& answer) {
  if (answer.status.ok() || answer.unsent) return false;
  return answer.sqlstate.empty() || answer.sqlstate.starts_with("57P");
}

Answer ToldAsUnknown(Answer answer) {
  if (!IsUnknown(answer)) return answer;
  answer.status = Error{Code::kDeadlineExceeded,
                        "it is unknown whether the change was made; check before you repeat it: " +
                            answer.status.error().message};
  return answer;
}

}  // namespace

struct Worker::Attempt {
  std::string sql;
  Params params;
  Done done;
  bool change = false;  // must not be made twice
  int number = 1;

  bool MayRepeat(const Answer& answer) const {
    if (answer.status.ok()) return false;
    return change ? IsCertainlyUndone(answer) : MayHelpToRepeat(answer);
  }
};

Worker::Worker(WorkerOptions options)
    : tables_(options.connection.url, options.component, options.steps, options.migrate_timeout) {
  for (std::size_t i = 0; i < std::max<std::size_t>(options.connections, 1); ++i) {
    connections_.push_back(std::make_unique<Connection>(thread_.io(), options.connection));
  }
  if (options.long_timeout.count() == 0) return;
  options.connection.statement_timeout = options.long_timeout;
  long_reads_ = std::make_unique<Connection>(thread_.io(), options.connection);
}

Worker::~Worker() { Close(); }

void Worker::Close(std::function<void()> last) {
  if (!thread_.running()) return;
  thread_.Finish([this, last = std::move(last)] {
    // Callbacks for the lost connection may send again immediately.
    closing_ = true;
    if (last) last();
    for (auto& connection : connections_) connection.reset();
    long_reads_.reset();
  });
}

Status Worker::Ready() {
  if (closing_) return Error{Code::kUnavailable, "postgres: the connections are closing"};
  return tables_.Ensure();
}

Connection& Worker::LeastBusy() {
  Connection* best = connections_.front().get();
  for (auto& connection : connections_) {
    if (connection->in_flight() < best->in_flight()) best = connection.get();
  }
  return *best;
}

void Worker::Run(std::string_view sql, Params params, Done done) {
  Begin(sql, std::move(params), std::move(done), /*change=*/false);
}

void Worker::RunChange(std::string_view sql, Params params, Done done) {
  Begin(
      sql, std::move(params),
      [done = std::move(done)](Answer answer) { done(ToldAsUnknown(std::move(answer))); },
      /*change=*/true);
}

void Worker::Begin(std::string_view sql, Params params, Done done, bool change) {
  if (Status ready = Ready(); !ready.ok()) return done({.status = ready.error(), .unsent = true});
  Try(std::make_shared<Attempt>(
      Attempt{std::string(sql), std::move(params), std::move(done), change}));
}

void Worker::Try(const std::shared_ptr<Attempt>& attempt) {
  LeastBusy().Send(attempt->sql, attempt->params, [this, attempt](Answer answer) {
    if (closing_ || !attempt->MayRepeat(answer) || attempt->number++ >= kMaxAttempts) {
      attempt->done(std::move(answer));
      return;
    }
    auto timer = std::make_shared<IoThread::Timer>(thread_.io(), kPause);
    timer->async_wait([this, attempt, timer](const boost::system::error_code&) { Try(attempt); });
  });
}

void Worker::RunOnce(std::string_view sql, Params params, Done done) {
  if (Status ready = Ready(); !ready.ok()) return done({.status = ready.error()});
  LeastBusy().Send(sql, std::move(params), std::move(done));
}

void Worker::RunLongChange(std::string_view sql, Params params, Done done) {
  RunLong(sql, std::move(params),
          [done = std::move(done)](Answer answer) { done(ToldAsUnknown(std::move(answer))); });
}

void Worker::RunLong(std::string_view sql, Params params, Done done) {
  if (Status ready = Ready(); !ready.ok()) return done({.status = ready.error(), .unsent = true});
  long_reads_->Send(sql, std::move(params), std::move(done));
}

}  // namespace weir::postgres
