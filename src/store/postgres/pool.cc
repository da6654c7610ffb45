#include "store/postgres/pool.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "drivers/io_thread.h"
#include "store/postgres/lane.h"
#include "store/postgres/schema.h"
#include "store/postgres/sweeper.h"
#include "store/sql/combining_store.h"

namespace weir::store::postgres {
namespace {

// The least time that a statement may take before its connection is dropped. Callers do not wait
// for it: they are answered after Options::timeout.
constexpr std::chrono::milliseconds kPatience{1000};

weir::postgres::ConnectionOptions ConnectionOptionsOf(const sql::PoolOptions& options) {
  const std::chrono::milliseconds patience = std::max(options.timeout, kPatience);
  const std::string limit = std::to_string(patience.count()) + "ms";
  weir::postgres::ConnectionOptions out;
  out.url = options.url;
  out.refused = Code::kUnauthenticated;
  out.connect_timeout = options.connect_timeout;
  out.statement_timeout = patience;
  out.reconnect_delay = std::chrono::milliseconds(50);
  out.longest_reconnect_delay = std::chrono::milliseconds(400);
  // Few statements, always by key: one plan for all, whatever the table was like when it was
  // created. A node that hangs with rows locked loses its locks.
  out.session =
      "-c enable_seqscan=off -c enable_bitmapscan=off -c enable_hashjoin=off "
      "-c enable_mergejoin=off -c plan_cache_mode=force_generic_plan -c jit=off "
      "-c statement_timeout=" +
      limit + " -c idle_in_transaction_session_timeout=" + limit;
  return out;
}

/// The pool's thread and the objects that run on it.
class PostgresPool final : public sql::Pool, public std::enable_shared_from_this<PostgresPool> {
 public:
  explicit PostgresPool(sql::PoolOptions options)
      : options_(std::move(options)), combiner_({.timeout = options_.timeout}, [this] {
          thread_.Post([this] { StartLane(); });
        }) {
    const sql::LaneParts parts{combiner_, known_, options_.clock,
                               options_.migrate ? std::function<Status()>([this] {
                                 return postgres::Migrate(options_.url);
                               })
                                                : nullptr};
    const weir::postgres::ConnectionOptions connection = ConnectionOptionsOf(options_);
    for (std::size_t i = 0; i < std::max<std::size_t>(options_.connections, 1); ++i) {
      lanes_.push_back(std::make_unique<Lane>(thread_.io(), connection, parts));
    }
    if (options_.sweep_interval.count() > 0) {
      sweeper_.emplace(thread_.io(), connection,
                       Sweeper::Options{options_.sweep_interval, options_.sweep_grace,
                                        options_.clock, options_.watcher});
    }
    thread_.Post([this] {
      for (const auto& lane : lanes_) lane->Start();
      if (sweeper_) sweeper_->Start();
    });
    thread_.Start();
  }

  ~PostgresPool() override {
    combiner_.Stop({Code::kUnavailable, "postgres: the store was closed"});
    thread_.Halt();
    // Connections notify their lanes that they are closed; these return their work.
    lanes_.clear();
  }

  std::unique_ptr<Store> MakeStore(boost::asio::io_context& io) override {
    return std::make_unique<sql::CombiningStore>(io, combiner_, shared_from_this());
  }

 private:
  void StartLane() {
    const auto lane = std::ranges::find_if(lanes_, [](const auto& l) { return l->free(); });
    if (lane != lanes_.end()) (*lane)->Start();
  }

  const sql::PoolOptions options_;
  IoThread thread_;
  sql::KnownKeys known_;
  sql::Combiner combiner_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::optional<Sweeper> sweeper_;
};

}  // namespace

Result<std::shared_ptr<sql::Pool>> OpenPool(sql::PoolOptions options) {
  if (options.migrate) {
    const Status migrated = postgres::Migrate(options.url);
    if (!migrated.ok() && migrated.error().code != Code::kUnavailable) return migrated.error();
  }
  return std::shared_ptr<sql::Pool>(std::make_shared<PostgresPool>(std::move(options)));
}

}  // namespace weir::store::postgres
