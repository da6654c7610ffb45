#pragma once

#include <cstdio>
#include <string>

#include "notify/event.h"
#include "weir/result.h"

namespace weir::notify {

/// Hands a notification to whoever brings it to the user.
///
/// Thread-safe unless a provider says otherwise.
class Provider {
 public:
  virtual ~Provider() = default;

  /// Blocks until it is delivered or not. kUnavailable and kDeadlineExceeded: trying again may
  /// help; any other error: it will not.
  virtual Status Deliver(const Event& event) = 0;
};

/// The line that ConsoleProvider prints, with its newline:
///   SMS SENT userId="42" message="hello" eventId=6f1c…
/// Texts are JSON strings, so a message cannot forge a line.
std::string SentLine(const Event& event);

/// Prints `SMS SENT` with the user, the payload and the event's id.
class ConsoleProvider final : public Provider {
 public:
  /// `out` must outlive this. Lines are flushed one by one.
  explicit ConsoleProvider(std::FILE* out = stdout) : out_(out) {}

  Status Deliver(const Event& event) override;

 private:
  std::FILE* out_;
};

}  // namespace weir::notify
