#include "notify/provider.h"

#include "base/json_text.h"

namespace weir::notify {

std::string SentLine(const Event& event) {
  std::string line = "SMS SENT userId=";
  AppendJsonString(line, event.user_id);
  line += " message=";
  AppendJsonString(line, event.message);
  line += " eventId=" + event.id + '\n';
  return line;
}

Status ConsoleProvider::Deliver(const Event& event) {
  const auto deadline = std::chrono::steady_clock::now() + patience_;
  const std::lock_guard lock(mutex_);
  const Status written = out_.Write(SentLine(event), deadline);
  if (written.ok()) return {};
  return Error{Code::kUnavailable, "cannot write to the console: " + written.error().message};
}

}  // namespace weir::notify
