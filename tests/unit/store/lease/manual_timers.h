#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "base/timers.h"

namespace weir::store::lease::test {

/// Timers fired by a test.
class ManualTimers final : public Timers {
 public:
  struct Set {
    std::map<Id, std::function<void()>> later;
    std::map<Id, std::function<void()>> soon;  ///< handlers that only wait for their turn

    bool empty() const { return later.empty() && soon.empty(); }
    void Ring() {
      for (const auto& [id, run] : std::exchange(later, {})) run();
      RunSoon();
    }
    /// What a reactor does after it has answered a check.
    void RunSoon() {
      for (const auto& [id, run] : std::exchange(soon, {})) run();
    }
  };

  explicit ManualTimers(Set& set) : set_(set) {}
  Id After(std::chrono::nanoseconds wait, std::function<void()> run) override {
    (wait.count() == 0 ? set_.soon : set_.later)[++last_] = std::move(run);
    return last_;
  }
  void Cancel(Id id) override {
    set_.later.erase(id);
    set_.soon.erase(id);
  }

 private:
  Set& set_;
  Id last_ = 0;
};

}  // namespace weir::store::lease::test
