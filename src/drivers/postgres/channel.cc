#include "drivers/postgres/channel.h"

#include <libpq-fe.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/blocking.h"
#include "drivers/channel_trouble.h"
#include "drivers/postgres/sqlstate.h"
#include "drivers/postgres/survey.h"
#include "drivers/postgres/url.h"

namespace weir::postgres {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// Beyond this many the oldest are dropped.
constexpr std::size_t kMaxWaiting = 4096;
/// How often a silent server is checked for life.
constexpr milliseconds kHeartbeat{500};
/// The time limit for connecting, and for an answer.
constexpr milliseconds kPatience{1000};
constexpr milliseconds kFirstDelay{50};
constexpr milliseconds kLongestDelay{500};

class PostgresChannel final : public Channel {
 public:
  PostgresChannel(const std::string& url, std::string name, Callbacks callbacks)
      : target_(Target::Parse(url)),
        name_(std::move(name)),
        callbacks_(std::move(callbacks)),
        wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        thread_([this] { Run(); }) {}

  ~PostgresChannel() override {
    stopping_ = true;
    Wake();
    thread_.join();
    ::close(wake_);
  }

  void Publish(std::string message) override {
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.size() >= kMaxWaiting) waiting_.pop_front();
      waiting_.push_back(std::move(message));
    }
    Wake();
  }

 private:
  void Wake() {
    const std::uint64_t one = 1;
    static_cast<void>(::write(wake_, &one, sizeof one));
  }

  /// Waits until the connection can be read or written. False: too late, or the thread must stop.
  bool Await(short events, steady_clock::time_point deadline) {
    while (!stopping_) {
      const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
      if (left.count() <= 0) return false;
      pollfd fd = {PQsocket(connection_), events, 0};
      if (::poll(&fd, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 100))) > 0) {
        return true;
      }
    }
    return false;
  }

  bool Connect() {
    if (!target_.ok()) return false;
    target_->Rotate();
    if (!Survey::Run(*target_, kPatience / 2).ok()) return false;
    const Target::Words words = target_->words();
    MayBlock("connecting to PostgreSQL, which resolves its host name");
    connection_ = PQconnectStartParams(words.names.data(), words.values.data(), 0);
    if (connection_ == nullptr || PQstatus(connection_) == CONNECTION_BAD) return false;
    // Notices would be written to standard error.
    PQsetNoticeProcessor(
        connection_, [](void*, const char*) {}, nullptr);
    const auto deadline = steady_clock::now() + kPatience;
    PostgresPollingStatusType status = PGRES_POLLING_WRITING;
    while (status != PGRES_POLLING_OK) {
      if (status == PGRES_POLLING_FAILED) return false;
      if (!Await(status == PGRES_POLLING_READING ? POLLIN : POLLOUT, deadline)) return false;
      status = PQconnectPoll(connection_);
    }
    return true;
  }

  /// Runs a statement and discards its rows. False on a timeout or an error.
  bool Execute(const char* sql, std::initializer_list<const char*> values = {}) {
    const int count = static_cast<int>(values.size());
    if (PQsendQueryParams(connection_, sql, count, nullptr, values.begin(), nullptr, nullptr, 0) ==
        0) {
      return false;
    }
    const auto deadline = steady_clock::now() + kPatience;
    bool good = true;
    for (;;) {
      while (PQisBusy(connection_) != 0) {
        if (!Await(POLLIN, deadline) || PQconsumeInput(connection_) == 0) return false;
      }
      PGresult* result = PQgetResult(connection_);
      if (result == nullptr) return good;
      const ExecStatusType status = PQresultStatus(result);
      good = good && (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK);
      PQclear(result);
    }
  }

  void TakeNotifications() {
    while (PGnotify* one = PQnotifies(connection_)) {
      if (one->be_pid != PQbackendPID(connection_)) callbacks_.message(one->extra);
      PQfreemem(one);
    }
  }

  std::optional<std::string> NextWaiting() {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) return std::nullopt;
    std::string message = std::move(waiting_.front());
    waiting_.pop_front();
    return message;
  }

  bool SendWaiting() {
    while (std::optional<std::string> message = NextWaiting()) {
      if (!Execute("SELECT pg_notify($1, $2)", {name_.c_str(), message->c_str()})) {
        const std::lock_guard lock(mutex_);
        waiting_.push_front(std::move(*message));
        return false;
      }
    }
    return true;
  }

  /// Runs until the connection is lost.
  void Listen() {
    while (!stopping_) {
      if (!SendWaiting()) return;
      TakeNotifications();
      pollfd fds[] = {{PQsocket(connection_), POLLIN, 0}, {wake_, POLLIN, 0}};
      const int ready = ::poll(fds, 2, static_cast<int>(kHeartbeat.count()));
      std::uint64_t ignored = 0;
      if ((fds[1].revents & POLLIN) != 0) {
        static_cast<void>(::read(wake_, &ignored, sizeof ignored));
      }
      if ((fds[0].revents & (POLLIN | POLLERR | POLLHUP)) != 0 &&
          PQconsumeInput(connection_) == 0) {
        return;
      }
      if (ready == 0 && !Execute("SELECT 1")) return;
    }
  }

  void NoteTrouble() {
    const std::string text =
        OneLine(connection_ == nullptr ? nullptr : PQerrorMessage(connection_));
    trouble_.Note("postgres: " + (text.empty() ? "connecting timed out" : text));
  }

  void Run() {
    milliseconds delay = kFirstDelay;
    while (!stopping_) {
      const std::string listen = "LISTEN " + name_;
      if (Connect() && Execute(listen.c_str())) {
        delay = kFirstDelay;
        trouble_.Clear();
        callbacks_.changed(true);
        Listen();
        callbacks_.changed(false);
      } else {
        NoteTrouble();
      }
      if (connection_ != nullptr) PQfinish(std::exchange(connection_, nullptr));
      // Messages do not end this wait: otherwise a server that is down would be retried endlessly.
      for (auto left = delay; !stopping_ && left.count() > 0; left -= kFirstDelay) {
        std::this_thread::sleep_for(kFirstDelay);
      }
      delay = std::min(2 * delay, kLongestDelay);
    }
  }

  Result<Target> target_;
  const std::string name_;
  const Callbacks callbacks_;
  const int wake_;
  std::atomic<bool> stopping_{false};
  PGconn* connection_ = nullptr;
  ChannelTrouble trouble_{callbacks_.quiet};
  std::mutex mutex_;
  std::deque<std::string> waiting_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace

std::unique_ptr<Channel> OpenChannel(std::string url, std::string name,
                                     Channel::Callbacks callbacks) {
  return std::make_unique<PostgresChannel>(url, std::move(name), std::move(callbacks));
}

}  // namespace weir::postgres
