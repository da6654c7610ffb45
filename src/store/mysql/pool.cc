#include "store/mysql/pool.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "drivers/mysql/url.h"
#include "store/mysql/lane.h"
#include "store/mysql/schema.h"
#include "store/mysql/sweeper.h"
#include "store/sql/combining_store.h"

namespace weir::store::mysql {
namespace {

// The least time that a statement may take before its connection is dropped. Callers do not wait
// for it: they are answered after Options::timeout.
constexpr std::chrono::milliseconds kPatience{1000};

weir::mysql::ConnectionOptions ConnectionOptionsOf(const sql::PoolOptions& options) {
  weir::mysql::ConnectionOptions out;
  out.url = options.url;
  out.connect_timeout = options.connect_timeout;
  out.statement_timeout = std::max(options.timeout, kPatience);
  out.limits = LimitsOf(out.statement_timeout);
  return out;
}

/// One thread per connection, since the client library blocks.
///
/// Thread-safe.
class MysqlPool final : public sql::Pool, public std::enable_shared_from_this<MysqlPool> {
 public:
  explicit MysqlPool(sql::PoolOptions options)
      : options_(std::move(options)), combiner_({.timeout = options_.timeout}, [this] { Wake(); }) {
    const weir::mysql::ConnectionOptions connection = ConnectionOptionsOf(options_);
    const sql::LaneParts parts{
        combiner_, known_, options_.clock,
        options_.migrate ? std::function<Status()>([this] { return mysql::Migrate(options_.url); })
                         : nullptr};
    for (std::size_t i = 0; i < std::max<std::size_t>(options_.connections, 1); ++i) {
      lanes_.push_back(std::make_unique<Lane>(connection, parts));
      threads_.emplace_back([this, lane = lanes_.back().get()] { Work(*lane); });
    }
    if (options_.sweep_interval.count() > 0) {
      sweeper_.emplace(connection, Sweeper::Options{options_.sweep_interval, options_.sweep_grace,
                                                    options_.clock, options_.watcher});
      threads_.emplace_back([this] { Sweep(); });
    }
  }

  ~MysqlPool() override {
    combiner_.Stop({Code::kUnavailable, "mysql: the store was closed"});
    {
      const std::lock_guard hold(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    stopped_sweeping_.notify_all();
    for (const auto& lane : lanes_) lane->Abort();
    if (sweeper_) sweeper_->Abort();
    for (std::thread& thread : threads_) thread.join();
  }

  std::unique_ptr<Store> MakeStore(boost::asio::io_context& io) override {
    return std::make_unique<sql::CombiningStore>(io, combiner_, shared_from_this());
  }

 private:
  void Wake() {
    {
      const std::lock_guard hold(mutex_);
      ++wakes_;
    }
    changed_.notify_one();
  }

  void Work(Lane& lane) {
    for (;;) {
      lane.Work();
      std::unique_lock hold(mutex_);
      changed_.wait(hold, [this] { return wakes_ > 0 || stopping_; });
      if (stopping_) return;
      --wakes_;
    }
  }

  void Sweep() {
    std::unique_lock hold(mutex_);
    std::chrono::milliseconds delay = options_.sweep_interval;
    while (!stopped_sweeping_.wait_for(hold, delay, [this] { return stopping_; })) {
      hold.unlock();
      delay = sweeper_->Step();
      hold.lock();
    }
  }

  const sql::PoolOptions options_;
  sql::KnownKeys known_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable stopped_sweeping_;
  std::size_t wakes_ = 0;
  bool stopping_ = false;
  sql::Combiner combiner_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::optional<Sweeper> sweeper_;
  std::vector<std::thread> threads_;
};

}  // namespace

Result<std::shared_ptr<sql::Pool>> OpenPool(sql::PoolOptions options) {
  if (const auto target = weir::mysql::ParseUrl(options.url); !target.ok()) {
    return target.error();
  }
  if (options.migrate) {
    const Status migrated = mysql::Migrate(options.url);
    if (!migrated.ok() && migrated.error().code != Code::kUnavailable) return migrated.error();
  }
  return std::shared_ptr<sql::Pool>(std::make_shared<MysqlPool>(std::move(options)));
}

}  // namespace weir::store::mysql
