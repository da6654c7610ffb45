#include "slots/patient_assign.h"

#include <chrono>
#include <thread>
#include <utility>

namespace weir::app {
namespace {

constexpr int kAttempts = 10;

// A service that restarts or a database that is down for a moment should not end a long import.
Result<std::vector<slots::Answer>> Assign(SlotsTarget& target,
                                          const std::vector<slots::Ask>& asks) {
  for (int attempt = 1;; ++attempt) {
    Result<std::vector<slots::Answer>> answers = target.Assign(asks);
    if (answers.ok() || answers.error().code != Code::kUnavailable || attempt == kAttempts) {
      return answers;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100 * attempt));
  }
}

}  // namespace

Result<std::vector<slots::Answer>> AssignPatiently(SlotsTarget& target,
                                                   const std::vector<slots::Ask>& asks) {
  if (asks.empty()) return std::vector<slots::Answer>();
  Result<std::vector<slots::Answer>> answers = Assign(target, asks);
  if (!answers.ok()) return answers;
  std::vector<slots::Answer*> open;
  std::vector<slots::Ask> rest;
  for (std::size_t i = 0; i < asks.size(); ++i) {
    if ((*answers)[i].outcome != slots::Outcome::kUnanswered) continue;
    open.push_back(&(*answers)[i]);
    rest.push_back(asks[i]);
  }
  // Each time, some of the requests for an ID are answered.
  if (rest.size() == asks.size()) return answers;
  Result<std::vector<slots::Answer>> more = AssignPatiently(target, rest);
  if (!more.ok()) return more;
  for (std::size_t i = 0; i < open.size(); ++i) *open[i] = std::move((*more)[i]);
  return answers;
}

}  // namespace weir::app
