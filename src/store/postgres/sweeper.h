#pragma once

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <string>

#include "drivers/postgres/connection.h"
#include "store/sql/sweep_options.h"

namespace weir::store::postgres {

/// Deletes expired rows, one small part of the table after another, over and over. Several nodes
/// may do so at the same time: the second finds nothing, and rows in use are left alone.
///
/// Thread safety: belongs to the thread that runs `io`.
class Sweeper {
 public:
  using Options = sql::SweepOptions;

  Sweeper(boost::asio::io_context& io, weir::postgres::ConnectionOptions connection,
          const Options& options);

  void Start() { Wait(options_.interval); }

 private:
  void Wait(std::chrono::milliseconds delay);
  void Sweep();
  void OnSwept(const weir::postgres::Answer& answer);
  void RaiseMark();
  void OnRaised(const weir::postgres::Answer& answer);

  using SteadyClock = std::chrono::steady_clock;
  const Options options_;
  weir::postgres::Connection connection_;
  boost::asio::basic_waitable_timer<SteadyClock> timer_;
  std::string after_;
  sql::Mark mark_;
};

}  // namespace weir::store::postgres
