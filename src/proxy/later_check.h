#pragma once

#include <string>
#include <vector>

#include "limiter/limiter.h"

namespace weir::proxy {

/// A question about a request that is asked when its head has left the buffer: it has a copy of who
/// asked. Shared with the limiter's callback, since the session may go on, or end, while a distant
/// store is asked.
///
/// Not thread-safe: belongs to its reactor's thread.
struct LaterCheck {
  explicit LaterCheck(const policy::Request& request);
  LaterCheck(const LaterCheck&) = delete;
  LaterCheck& operator=(const LaterCheck&) = delete;

  limiter::Check check;

 private:
  std::string values_;
  std::string domain_;
  std::vector<policy::Entry> entries_;
  std::vector<policy::Descriptor> descriptors_;
};

}  // namespace weir::proxy
