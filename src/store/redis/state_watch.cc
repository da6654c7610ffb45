#include "store/redis/state_watch.h"

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "drivers/io_thread.h"
#include "drivers/redis/cluster.h"
#include "drivers/redis/connection.h"
#include "drivers/redis/script.h"
#include "drivers/redis/slot.h"
#include "drivers/redis/url.h"

namespace weir::store::redis {
namespace {

using weir::redis::Answer;
using weir::redis::Command;
using weir::redis::Reply;
using weir::redis::Script;

/// For a cluster: enough that each of a few dozen masters has some of these slots.
constexpr int kClusterMarks = 512;

const Script& RaiseScript() {
  static const Script script("return redis.call('INCR', KEYS[1])");
  return script;
}

/// A server that is down or slow is reported elsewhere.
bool IsAway(const Error& error) {
  return error.code == Code::kUnavailable || error.code == Code::kDeadlineExceeded;
}

struct Mark {
  std::string key;  // its last byte is no algorithm's letter, so it is not mistaken for a limit's
  std::uint16_t slot = 0;
  std::int64_t known = 0;  // its last value; 0: unknown
};

}  // namespace

/// Thread safety: only its own thread, except for Open and Close.
class StateWatch::Core {
 public:
  Core(const StateWatchOptions& options, const weir::redis::Address& address, Callbacks callbacks)
      : interval_(options.interval), callbacks_(std::move(callbacks)), timer_(thread_.io()) {
    auto settings = weir::redis::ConnectionOptions::Of(address);
    settings.connect_timeout = options.timeout;
    settings.command_timeout = options.timeout;
    if (address.cluster) {
      cluster_.emplace(thread_.io(), settings, address.endpoints, 1);
    } else {
      connection_.emplace(thread_.io(), settings);
    }
    for (int i = 0; i < (address.cluster ? kClusterMarks : 1); ++i) {
      std::string key = options.prefix + "mark:" + std::to_string(i) + "#";
      const std::uint16_t slot = weir::redis::SlotOf(key);
      marks_.push_back({std::move(key), slot});
    }
    thread_.Start();
    thread_.Post([this] { Look(); });
  }

  ~Core() {
    thread_.Finish([this] {
      closed_ = true;
      timer_.cancel();
      connection_.reset();
      cluster_.reset();
    });
  }

 private:
  void Look() {
    waiting_ = 1;
    std::set<std::uint32_t> masters;
    for (Mark& mark : marks_) {
      if (cluster_ && !masters.insert(cluster_->MasterOf(mark.slot)).second) continue;
      ++waiting_;
      Command arguments{"1", mark.key};
      auto done = [this, &mark](const Answer& answer) { Take(mark, answer); };
      if (cluster_) {
        cluster_->Call(mark.slot, RaiseScript(), std::move(arguments), std::move(done));
      } else {
        RaiseScript().Call(*connection_, std::move(arguments), std::move(done));
      }
    }
    Looked();
  }

  void Take(Mark& mark, const Answer& answer) {
    if (closed_) return;
    if (answer.status.ok() && answer.reply.kind == Reply::Kind::kInteger) {
      lost_ = lost_ || answer.reply.integer <= mark.known;
      mark.known = answer.reply.integer;
    } else if (!answer.status.ok() && !IsAway(answer.status.error()) &&
               !std::exchange(failed_, true)) {
      callbacks_.failed(answer.status.error());
    }
    Looked();
  }

  /// The next round starts after the last answer: numbers are compared in order of incrementing.
  void Looked() {
    if (--waiting_ > 0) return;
    if (std::exchange(lost_, false)) callbacks_.lost();
    timer_.expires_after(interval_);
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (!error && !closed_) Look();
    });
  }

  const std::chrono::milliseconds interval_;
  const Callbacks callbacks_;
  IoThread thread_;
  IoThread::Timer timer_;
  std::optional<weir::redis::Connection> connection_;  // or
  std::optional<weir::redis::Cluster> cluster_;
  std::vector<Mark> marks_;
  std::size_t waiting_ = 0;
  bool lost_ = false;
  bool failed_ = false;
  bool closed_ = false;
};

Result<std::unique_ptr<StateWatch>> StateWatch::Open(const StateWatchOptions& options,
                                                     Callbacks callbacks) {
  const auto address = weir::redis::ParseUrl(options.url);
  if (!address.ok()) return address.error();
  return std::unique_ptr<StateWatch>(
      new StateWatch(std::make_unique<Core>(options, *address, std::move(callbacks))));
}

StateWatch::StateWatch(std::unique_ptr<Core> core) : core_(std::move(core)) {}
StateWatch::~StateWatch() = default;

}  // namespace weir::store::redis
