#pragma once

// What stores share that send the applications of one Apply in several calls.

#include <cstddef>
#include <memory>
#include <utility>

#include "store/store.h"

namespace weir::store {

/// One application that is not decided yet, of an Apply that has several. Not thread-safe.
struct Pending {
  struct Call {
    Done done;
    std::size_t left = 0;  ///< applications that are not decided
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
