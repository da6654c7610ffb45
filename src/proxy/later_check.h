#pragma once

#include <string>
#include <vector>

#include "limiter/limiter.h"

namespace weir::proxy {

/// A check of a request whose head may have left the buffer: it holds a copy of the request's
/// values. Shared with the limiter's callback, since the session may continue, or end, while a
/// remote store is asked.
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
