#pragma once

#include <unistd.h>

#include <chrono>
#include <mutex>
#include <string>

#include "base/bounded_write.h"
#include "notify/event.h"
#include "weir/result.h"

namespace weir::notify {

/// Delivers a notification to the user.
///
/// Thread-safe unless a provider says otherwise.
class Provider {
 public:
  virtual ~Provider() = default;

  /// Blocks until it is delivered or has failed. kUnavailable and kDeadlineExceeded: a retry may
  /// help; with any other error it will not.
  virtual Status Deliver(const Event& event) = 0;
};

/// The line that ConsoleProvider prints, with its newline:
///   SMS SENT userId="42" message="hello" eventId=6f1c…
/// Texts are JSON strings, so a message cannot forge a line.
std::string SentLine(const Event& event);

/// Prints `SMS SENT` with the user, the payload and the event's id.
class ConsoleProvider final : public Provider {
 public:
  /// `fd` must outlive this. A line that cannot be written within `patience` is an error: perhaps
  /// no one reads it, and the service must be able to stop all the same.
  explicit ConsoleProvider(int fd = STDOUT_FILENO,
                           std::chrono::milliseconds patience = std::chrono::seconds(5))
      : patience_(patience), out_(fd) {}

  Status Deliver(const Event& event) override;

 private:
  const std::chrono::milliseconds patience_;
  std::mutex mutex_;  // a line is not mixed with another
  LineWriter out_;
};

}  // namespace weir::notify
