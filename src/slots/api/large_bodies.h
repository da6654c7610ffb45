#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "drivers/io_thread.h"
#include "protocol/http/message.h"

namespace weir::slots {

/// Reads large bodies on a thread of its own, one after the other: a batch of ten thousand events
/// takes longer than a reactor may neglect its other connections. The thread yields to the
/// reactors when processors are scarce.
///
/// Thread-safe.
class LargeBodies {
 public:
  using Then = std::function<void(std::string_view body, http::Reply reply)>;

  LargeBodies();
  /// Handles all bodies already passed to Read before it returns, unless closed.
  ~LargeBodies();
  LargeBodies(const LargeBodies&) = delete;
  LargeBodies& operator=(const LargeBodies&) = delete;

  /// Calls `then`: immediately for a small body, otherwise later, on that thread. Like the request
  /// it belongs to, `body` must stay valid until the reply is sent.
  void Read(std::string_view body, http::Reply reply, Then then);

  /// Stops reading: returns when the current body has been handled, and drops the replies of all
  /// waiting ones. Must not be called concurrently with Read.
  void Close() { thread_.reset(); }

 private:
  std::optional<IoThread> thread_{std::in_place};  // none: closed
};

}  // namespace weir::slots
