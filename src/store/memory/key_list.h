#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "store/key_list.h"
#include "weir/engine.h"

namespace weir::store::memory {

/// The engine's keys in their order, page by page. The table has them in another one, so whoever
/// looks for a page looks at all of them. That is done in slices with pauses between them, which
/// take a fifth of a processor at most: a long list for one person costs others little, however
/// often it is asked for. What is found beyond the page is kept for the pages after it.
///
/// Not thread-safe but for Stop: belongs to one thread, which it blocks; not a reactor's.
class KeyList {
 public:
  /// `ahead`: how many keys are found at once, if a page does not have more.
  explicit KeyList(const Engine& engine, std::size_t ahead = 20'000)
      : engine_(engine), ahead_(ahead) {}

  KeyPage Read(const KeyQuery& query);
  /// Ends what is being read, and all that is asked for from now on, soon and with nothing.
  void Stop() noexcept { stopped_ = true; }

 private:
  using Clock = std::chrono::steady_clock;

  void Find(const KeyQuery& query);
  bool Has(const KeyQuery& query) const;

  const Engine& engine_;
  const std::size_t ahead_;
  std::atomic<bool> stopped_{false};
  std::vector<HeldKey> keys_;  // the first of those with prefix_, after the key after_
  std::string prefix_;
  std::string after_;
  bool complete_ = false;  // there are no others
  Clock::time_point found_at_{};
};

}  // namespace weir::store::memory
