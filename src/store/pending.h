#pragma once

// Shared by stores that send the applications of one Apply in several calls.

#include <cstddef>
#include <memory>
#include <utility>

#include "store/store.h"

namespace weir::store {

/// One undecided application of an Apply that has several. Not thread-safe.
struct Pending {
  struct Call {
    Done done;
    std::size_t left = 0;  ///< applications that are not decided yet
  };

  /// Call it once for each; the last one ends the Apply.
  void Complete() const {
    if (--call->left == 0) {
      const Done done = std::move(call->done);
      done();
    }
  }

  Application* application;
  std::shared_ptr<Call> call;
};

}  // namespace weir::store
