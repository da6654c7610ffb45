#include "store/postgres/sweeper.h"

#include <utility>

#include "store/postgres/schema.h"
#include "store/postgres/sql.h"

namespace weir::store::postgres {
namespace {

constexpr std::int64_t kPart = 1000;  // rows examined per statement
constexpr std::chrono::milliseconds kShortly{20};

}  // namespace

Sweeper::Sweeper(boost::asio::io_context& io, weir::postgres::ConnectionOptions connection,
                 const Options& options)
    : options_(options),
      connection_(io, std::move(connection)),
      timer_(io),
      mark_(options.watcher) {}

void Sweeper::Wait(std::chrono::milliseconds delay) {
  timer_.expires_after(delay);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    options_.watcher.lost&& mark_.Due() ? RaiseMark() : Sweep();
  });
}

void Sweeper::Sweep() {
  const Nanos grace = std::chrono::nanoseconds(options_.grace).count();
  weir::postgres::Params params;
  params.Bytes(after_).Int(kPart);
  if (options_.clock != nullptr) {
    params.Int(options_.clock->Now() - grace);
  } else {
    params.Null();
  }
  params.Int(grace);
  connection_.Send(kSweepRows, std::move(params),
                   [this](const weir::postgres::Answer& answer) { OnSwept(answer); });
}

void Sweeper::OnSwept(const weir::postgres::Answer& answer) {
  // A failure is not retried immediately: the next round finds the same rows.
  if (!answer.status.ok() || answer.rows.size() == 0) return Wait(options_.interval);
  const std::int64_t looked = answer.rows.Int(0, 1);
  const std::int64_t gone = answer.rows.Int(0, 2);
  after_ = looked < kPart ? std::string() : std::string(answer.rows.Text(0, 0));
  Wait(gone * 4 >= kPart ? std::min(kShortly, options_.interval) : options_.interval);
}

void Sweeper::RaiseMark() {
  weir::postgres::Params params;
  params.Bytes(sql::kMarkId).Bytes(sql::Mark::NewState()).Int(sql::kFirstMark);
  connection_.Send(kRaiseMark, std::move(params),
                   [this](const weir::postgres::Answer& answer) { OnRaised(answer); });
}

void Sweeper::OnRaised(const weir::postgres::Answer& answer) {
  if (answer.status.ok() && answer.rows.size() == 1) {
    mark_.Take(answer.rows.Text(0, 0), answer.rows.Int(0, 1));
  } else if (!answer.status.ok() && answer.sqlstate != kUndefinedTable) {
    mark_.Fail(answer.status.error());  // a lane recreates a missing table, without the mark
  }
  Wait(options_.interval);
}

}  // namespace weir::store::postgres
