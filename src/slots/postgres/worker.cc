#include "slots/postgres/worker.h"

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "drivers/postgres/sqlstate.h"
#include "slots/postgres/schema.h"

namespace weir::slots::postgres {
namespace {

constexpr int kMaxAttempts = 4;
constexpr std::chrono::milliseconds kPause{50};
constexpr std::chrono::minutes kLongRead{10};
constexpr std::chrono::seconds kMigrateTimeout{5};

using Timer = boost::asio::basic_waitable_timer<std::chrono::steady_clock,
                                                boost::asio::wait_traits<std::chrono::steady_clock>,
                                                boost::asio::io_context::executor_type>;

// Nothing is known, or the server undid it and says so; statements here are idempotent.
bool MayHelpToRepeat(const weir::postgres::Answer& answer) {
  if (answer.status.ok()) return false;
  return answer.sqlstate.empty() || weir::postgres::IsRetryable(answer.sqlstate) ||
         answer.sqlstate.starts_with("57P");  // the session was ended, the server stops or starts
}

Error Closing() { return {Code::kUnavailable, "the store of slots is closing"}; }

}  // namespace

struct PostgresSlotStore::Worker::Attempt {
  std::string sql;
  weir::postgres::Params params;
  Done done;
  int number = 1;
};

PostgresSlotStore::Worker::Worker(Options options)
    : options_(std::move(options)),
      work_(boost::asio::make_work_guard(io_)),
      tables_(options_.url, "slots", Migrations(), kMigrateTimeout) {
  for (std::size_t i = 0; i < std::max<std::size_t>(options_.connections, 1); ++i) {
    connections_.push_back(std::make_unique<weir::postgres::Connection>(
        io_, weir::postgres::ConnectionOptions{.url = options_.url,
                                               .reconnect_delay = std::chrono::milliseconds(20)}));
  }
  long_reads_ = std::make_unique<weir::postgres::Connection>(
      io_, weir::postgres::ConnectionOptions{.url = options_.url, .statement_timeout = kLongRead});
  thread_ = std::thread([this] { io_.run(); });
}

PostgresSlotStore::Worker::~Worker() {
  boost::asio::post(io_, [this] {
    // Whoever is told that the connection is gone may ask again at once.
    closing_ = true;
    for (auto& connection : connections_) connection.reset();
    long_reads_.reset();
    work_.reset();
    io_.stop();
  });
  thread_.join();
}

void PostgresSlotStore::Worker::Post(std::function<void()> task) {
  boost::asio::post(io_, std::move(task));
}

weir::postgres::Connection& PostgresSlotStore::Worker::LeastBusy() {
  weir::postgres::Connection* best = connections_.front().get();
  for (auto& connection : connections_) {
    if (connection->in_flight() < best->in_flight()) best = connection.get();
  }
  return *best;
}

void PostgresSlotStore::Worker::Run(std::string_view sql, weir::postgres::Params params,
                                    Done done) {
  if (closing_) return done({.status = Closing()});
  if (Status ready = tables_.Ensure(); !ready.ok()) {
    done({.status = ready.error()});
    return;
  }
  Try(std::make_shared<Attempt>(Attempt{std::string(sql), std::move(params), std::move(done)}));
}

void PostgresSlotStore::Worker::Try(const std::shared_ptr<Attempt>& attempt) {
  LeastBusy().Send(attempt->sql, attempt->params, [this, attempt](weir::postgres::Answer answer) {
    if (closing_ || !MayHelpToRepeat(answer) || attempt->number++ >= kMaxAttempts) {
      attempt->done(std::move(answer));
      return;
    }
    auto timer = std::make_shared<Timer>(io_, kPause);
    timer->async_wait([this, attempt, timer](const boost::system::error_code&) { Try(attempt); });
  });
}

void PostgresSlotStore::Worker::RunOnce(std::string_view sql, weir::postgres::Params params,
                                        Done done) {
  if (closing_) return done({.status = Closing()});
  if (Status ready = tables_.Ensure(); !ready.ok()) {
    done({.status = ready.error()});
    return;
  }
  LeastBusy().Send(sql, std::move(params), std::move(done));
}

void PostgresSlotStore::Worker::RunLong(std::string_view sql, weir::postgres::Params params,
                                        Done done) {
  if (closing_) return done({.status = Closing()});
  if (Status ready = tables_.Ensure(); !ready.ok()) {
    done({.status = ready.error()});
    return;
  }
  long_reads_->Send(sql, std::move(params), std::move(done));
}

}  // namespace weir::slots::postgres
