#pragma once

#include <functional>
#include <string_view>

#include "drivers/io_thread.h"
#include "protocol/http/message.h"

namespace weir::slots {

/// Reads large bodies on a thread of its own, one after the other: a batch of ten thousand events
/// takes longer than a reactor may be away from its other connections.
///
/// Thread-safe.
class LargeBodies {
 public:
  using Then = std::function<void(std::string_view body, http::Reply reply)>;

  LargeBodies() { thread_.Start(); }
  /// All that was read is handed on before this returns.
  ~LargeBodies();
  LargeBodies(const LargeBodies&) = delete;
  LargeBodies& operator=(const LargeBodies&) = delete;

  /// Calls `then`: at once with a small body, else later with a copy, on that thread.
  void Read(std::string_view body, http::Reply reply, Then then);

 private:
  IoThread thread_;
};

}  // namespace weir::slots
