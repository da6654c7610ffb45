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
  const std::string line = SentLine(event);
  if (std::fwrite(line.data(), 1, line.size(), out_) == line.size() && std::fflush(out_) == 0) {
    return {};
  }
  return Error{Code::kUnavailable, "the console cannot be written to"};
}

}  // namespace weir::notify
