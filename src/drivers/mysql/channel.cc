#include "drivers/mysql/channel.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "drivers/channel_trouble.h"
#include "drivers/mysql/connection.h"
#include "drivers/mysql/migration.h"

namespace weir::mysql {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kInterval{200};
constexpr milliseconds kLongestAway{500};
constexpr milliseconds kLongestDelay{10'000};
constexpr milliseconds kCleanEvery{10'000};
constexpr std::size_t kMaxPerDelete = 1000;
/// Ids are assigned before a row becomes visible, so a row may appear after one with a higher id.
/// How far to look back for such rows.
constexpr std::chrono::seconds kLookBack{2};
constexpr std::size_t kMaxWaiting = 4096;
constexpr std::size_t kMaxPerInsert = 64;

constexpr const char* kSteps[] = {
    "CREATE TABLE IF NOT EXISTS weir_messages("
    "id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, channel VARCHAR(64) NOT NULL, "
    "body VARBINARY(8000) NOT NULL, at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, "
    "KEY weir_messages_at (at)) ENGINE=InnoDB"};

Error NotUnderstood() { return {Code::kInternal, "mysql: unexpected response"}; }

class MysqlChannel final : public Channel {
 public:
  MysqlChannel(std::string url, std::string name, Callbacks callbacks, bool migrate)
      : url_(std::move(url)),
        name_(std::move(name)),
        prepared_(!migrate),
        callbacks_(std::move(callbacks)),
        connection_({.url = url_}),
        thread_([this] { Run(); }) {}

  ~MysqlChannel() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_one();
    connection_.Abort();
    thread_.join();
  }

  void Publish(std::string message) override {
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.size() >= kMaxWaiting) waiting_.pop_front();
      waiting_.push_back(std::move(message));
    }
    changed_.notify_one();
  }

 private:
  void Run() {
    while (!Pause()) {
      const Status status = Turn();
      hurry_ = status.ok() && Clean();
      Heed(status);
    }
    if (up_) callbacks_.changed(false);
  }

  Status Turn() {
    if (!prepared_) {
      if (Status made = MigrateChannel(url_); !made.ok()) return made;
      prepared_ = true;
    }
    if (Status sent = Send(); !sent.ok()) return sent;
    return Receive();
  }

  void Heed(const Status& status) {
    if (status.ok()) {
      delay_ = kInterval;
      trouble_.Clear();
    } else {
      // A server that is back should be found soon; rights and tables take longer to appear.
      const bool away = status.error().code == Code::kUnavailable;
      delay_ = std::min(2 * delay_, away ? kLongestAway : kLongestDelay);
      trouble_.Note(status.error().message);
    }
    if (status.ok() == up_) return;
    up_ = status.ok();
    if (!up_) {
      seen_.clear();
      marks_.clear();
    }
    callbacks_.changed(up_);
  }

  /// True: the thread must stop.
  bool Pause() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, delay_,
                      [this] { return stopping_ || hurry_ || (up_ && !waiting_.empty()); });
    return stopping_;
  }

  Status Send() {
    std::deque<std::string> some;
    {
      const std::lock_guard lock(mutex_);
      while (!waiting_.empty() && some.size() < kMaxPerInsert) {
        some.push_back(std::move(waiting_.front()));
        waiting_.pop_front();
      }
    }
    if (some.empty()) return {};
    std::string sql = "INSERT INTO weir_messages(channel, body) VALUES ";
    for (std::size_t i = 0; i < some.size(); ++i) {
      sql += i == 0 ? "('" : ",('";
      sql += name_ + "',";
      AppendLiteral(sql, some[i]);
      sql += ')';
    }
    Status sent = connection_.Run(sql).status;
    if (sent.ok()) return sent;
    const std::lock_guard lock(mutex_);
    waiting_.insert(waiting_.begin(), some.begin(), some.end());
    return sent;
  }

  Status Receive() {
    if (!up_) return Begin();
    const std::string from = std::to_string(marks_.front().id);
    Answer answer = connection_.Run("SELECT id, body FROM weir_messages WHERE id > " + from +
                                    " AND channel = '" + name_ + "' ORDER BY id");
    if (!answer.status.ok()) return answer.status;
    if (answer.results.empty()) return NotUnderstood();
    std::int64_t last = marks_.back().id;
    while (answer.results[0].Next()) {
      const std::int64_t id = answer.results[0].Int(0);
      last = std::max(last, id);
      if (seen_.insert(id).second) callbacks_.message(answer.results[0].Text(1));
    }
    Remember(last);
    return {};
  }

  /// Only messages from now on matter.
  Status Begin() {
    Answer answer = connection_.Run("SELECT COALESCE(MAX(id), 0) FROM weir_messages");
    if (!answer.status.ok()) return answer.status;
    if (answer.results.empty() || !answer.results[0].Next()) return NotUnderstood();
    Remember(answer.results[0].Int(0));
    return {};
  }

  void Remember(std::int64_t last) {
    const auto now = steady_clock::now();
    marks_.push_back({now, last});
    while (marks_.size() > 1 && marks_[1].at < now - kLookBack) marks_.pop_front();
    seen_.erase(seen_.begin(), seen_.upper_bound(marks_.front().id));
  }

  /// In parts, so that no one waits long for the locks. True: there is more, however much is
  /// written meanwhile.
  bool Clean() {
    if (steady_clock::now() < clean_at_) return false;
    const Answer answer = connection_.Run(
        "DELETE FROM weir_messages WHERE at < NOW() - INTERVAL 60 SECOND ORDER BY at LIMIT " +
        std::to_string(kMaxPerDelete));
    const bool more = answer.status.ok() && answer.affected >= kMaxPerDelete;
    if (!more) clean_at_ = steady_clock::now() + kCleanEvery;
    return more;
  }

  struct Mark {
    steady_clock::time_point at;
    std::int64_t id;  // the highest id seen then
  };

  const std::string url_;
  const std::string name_;
  bool prepared_;  // the table exists, or another process will create it
  const Callbacks callbacks_;
  Connection connection_;
  bool up_ = false;
  milliseconds delay_ = kInterval;
  ChannelTrouble trouble_{callbacks_.quiet};
  std::deque<Mark> marks_;
  std::set<std::int64_t> seen_;
  steady_clock::time_point clean_at_{};
  bool hurry_ = false;  // there is more to delete
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> waiting_;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace

Status MigrateChannel(const std::string& url) { return Migrate(url, "channel", kSteps); }

std::unique_ptr<Channel> OpenChannel(std::string url, std::string name,
                                     Channel::Callbacks callbacks, bool migrate) {
  return std::make_unique<MysqlChannel>(std::move(url), std::move(name), std::move(callbacks),
                                        migrate);
}

}  // namespace weir::mysql
