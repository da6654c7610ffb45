// Several processes that share their limits through PostgreSQL: run this as often as you like at
// once, and together they do no more than ten jobs an hour.

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <iostream>
#include <memory>

#include "store/postgres/pool.h"

int main(int argc, char** argv) {
  using namespace std::chrono_literals;
  if (argc != 2) {
    std::cerr << "usage: " << argv[0] << " postgres://user@host/database\n";
    return 2;
  }
  weir::store::sql::PoolOptions options;
  options.url = argv[1];
  auto pool = weir::store::postgres::OpenPool(options);
  if (!pool.ok()) {
    std::cerr << pool.error().message << '\n';
    return 1;
  }

  // One store for each thread that runs an io_context; the pool behind them is shared.
  boost::asio::io_context io;
  const std::unique_ptr<weir::store::Store> store = (*pool)->MakeStore(io);

  const weir::Quota quota = *weir::Quota::SlidingLog(10, 1h);
  const weir::store::Charge charge{"jobs", 1, &quota};
  for (int i = 0; i < 12; ++i) {
    weir::Decision decision;
    weir::store::Application application;
    application.charges = std::span(&charge, 1);
    application.decisions = std::span(&decision, 1);
    store->Apply(std::span(&application, 1), [&] {
      if (!application.status.ok()) {
        std::cout << "undecided: " << application.status.error().message << '\n';
      } else if (application.applied) {
        std::cout << "job done, " << decision.remaining << " left\n";
      } else {
        std::cout << "no more this hour\n";
      }
    });
    io.restart();
    io.run();  // returns when the answer has come
  }
}
