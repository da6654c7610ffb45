#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "drivers/io_thread.h"
#include "protocol/http/message.h"

namespace weir::slots {

/// Reads large bodies on a thread of its own, one after the other: a batch of ten thousand events
/// takes longer than a reactor may be away from its other connections. The thread gives way to the
/// reactors where processors are scarce.
///
/// Thread-safe.
class LargeBodies {
 public:
  using Then = std::function<void(std::string_view body, http::Reply reply)>;

  LargeBodies();
  /// All that was read is handed on before this returns, unless it is closed.
  ~LargeBodies();
  LargeBodies(const LargeBodies&) = delete;
  LargeBodies& operator=(const LargeBodies&) = delete;

  /// Calls `then`: at once with a small body, else later, on that thread. Like the request it
  /// belongs to, `body` must be valid until the reply is given.
  void Read(std::string_view body, http::Reply reply, Then then);

  /// Reads no more: returns when the body that is being read is handed on, and all replies that
  /// wait are let go. Not while Read may be called.
  void Close() { thread_.reset(); }

 private:
  std::optional<IoThread> thread_{std::in_place};  // none: closed
};

}  // namespace weir::slots
