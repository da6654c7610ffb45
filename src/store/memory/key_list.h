#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "store/key_list.h"
#include "weir/engine.h"

namespace weir::store::memory {

/// The engine's keys in sorted order, page by page. The table is not sorted, so finding a page
/// means reading all keys. That is done in slices with pauses between them, which take a fifth of a
/// processor at most: a long list costs other callers little, however often it is requested. Keys
/// found beyond the page are kept for the pages after it.
///
/// Not thread-safe except for Stop: belongs to one thread, which it blocks; not a reactor's.
class KeyList {
 public:
  /// `ahead`: how many keys are collected per search, if a page does not have more.
  explicit KeyList(const Engine& engine, std::size_t ahead = 20'000)
      : engine_(engine), ahead_(ahead) {}

  KeyPage Read(const KeyQuery& query);
  /// Ends the current read and all later ones soon, with empty pages.
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
  bool complete_ = false;  // there are no more
  Clock::time_point found_at_{};
};

}  // namespace weir::store::memory
