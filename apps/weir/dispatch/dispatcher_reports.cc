// How a dispatcher reports the outcome of claimed events to the store, and trouble to its operator.

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "dispatch/dispatcher.h"
#include "telemetry/log.h"

namespace weir::app {
namespace {

using std::chrono::milliseconds;
using telemetry::Level;
using telemetry::Log;

constexpr milliseconds kReportAgain{500};
constexpr milliseconds kTellAgain{60'000};
constexpr milliseconds kGather{5};  // ends this close together are reported together
constexpr std::size_t kMaxTold = 1'000;

}  // namespace

slots::Millis Dispatcher::SteadyMillis() {
  return std::chrono::duration_cast<milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void Dispatcher::LogDead(const slots::Finish& end) {
  Log(Level::kWarn, "dead letter",
      {{"event", std::string_view(end.event_id)}, {"reason", std::string_view(end.error)}});
}

bool Dispatcher::Trouble::IsNews(const std::string& why, slots::Millis now) {
  if (reason == why && now < tell_again) return false;
  reason = why;
  tell_again = now + kTellAgain.count();
  return true;
}

bool Dispatcher::IsRefused(const Error& error) const {
  const bool denied = error.code == Code::kUnauthenticated || error.code == Code::kPermissionDenied;
  // Grants of a database can be given while this waits.
  if (!denied || ever_claimed_ || source_.store() != nullptr || !options_.on_refused) return false;
  options_.on_refused(error);
  return true;
}

void Dispatcher::FinishLoop(const std::stop_token& delivered) {
  for (;;) {
    std::vector<Over> over;
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, delivered, milliseconds(100), [this] { return !ended_.empty(); });
      if (ended_.empty() && delivered.stop_requested()) return;
      if (ended_.size() < kMaxTold && !delivered.stop_requested()) {
        lock.unlock();
        std::this_thread::sleep_for(kGather);
        lock.lock();
      }
      const std::size_t count = std::min(ended_.size(), kMaxTold);
      const auto last = ended_.begin() + static_cast<std::ptrdiff_t>(count);
      over.assign(std::make_move_iterator(ended_.begin()), std::make_move_iterator(last));
      ended_.erase(ended_.begin(), last);
    }
    if (!over.empty()) TellStore(std::move(over), delivered);
  }
}

void Dispatcher::TellStore(std::vector<Over> over, const std::stop_token& stop) {
  std::vector<slots::Finish> ends;
  ends.reserve(over.size());
  for (const Over& one : over) ends.push_back(one.end);
  for (;;) {
    // Not more than it is: both times were rounded down. A longer time would be refused.
    const slots::Millis now = SteadyMillis() - 1;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      ends[i].ago = std::clamp<slots::Millis>(now - over[i].at, 0, slots::kMaxLease);
    }
    const Result<std::vector<slots::Finished>> told = source_.Finish(ends);
    store_up_ = told.ok() || told.error().code != Code::kUnavailable;
    const bool refused = !told.ok() && told.error().code == Code::kInvalidArgument;
    if (refused && over.size() > 1) return TellHalves(std::move(over), stop);
    if (told.ok() && std::exchange(report_trouble_, std::nullopt)) {
      Log(Level::kInfo, "reporting deliveries to the store again");
    }
    if (told.ok() || refused || stop.stop_requested()) return Told(ends, told);
    if (!report_trouble_) report_trouble_ = Trouble{};
    if (report_trouble_->IsNews(told.error().message, now)) {
      Log(Level::kWarn, "cannot report deliveries to the store; will retry",
          {{"reason", std::string_view(told.error().message)}});
    }
    std::this_thread::sleep_for(kReportAgain);
  }
}

// One of them is at fault: the others must not wait for it, or they would be delivered again.
void Dispatcher::TellHalves(std::vector<Over> over, const std::stop_token& stop) {
  const auto middle = over.begin() + static_cast<std::ptrdiff_t>(over.size() / 2);
  std::vector<Over> rest(std::make_move_iterator(middle), std::make_move_iterator(over.end()));
  over.erase(middle, over.end());
  TellStore(std::move(over), stop);
  TellStore(std::move(rest), stop);
}

void Dispatcher::Told(const std::vector<slots::Finish>& ends,
                      const Result<std::vector<slots::Finished>>& told) {
  if (!told.ok()) {
    Log(Level::kError, "cannot report deliveries to the store; they will be delivered again",
        {{"event", std::string_view(ends.front().event_id)},
         {"events", std::uint64_t{ends.size()}},
         {"reason", std::string_view(told.error().message)}});
  }
  {
    const std::lock_guard lock(mutex_);
    in_hand_ -= ends.size();
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if (!told.ok() || (*told)[i] == slots::Finished::kLost) ++counts_.lost;
      if (!told.ok() || (*told)[i] != slots::Finished::kGivenUp) continue;
      tried_.erase(ends[i].event_id);
      ++counts_.dead;
      --counts_.retried;
      LogDead(ends[i]);
    }
  }
  changed_.notify_all();
}

}  // namespace weir::app
