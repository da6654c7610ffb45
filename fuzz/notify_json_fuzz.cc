// Bodies of /api/config and /api/send, and events as the sender reads them from the topic.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "notify/api/notify_json.h"
#include "notify/event.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  using weir::Result;
  if (const auto limit = weir::notify::ParseLimit(text); limit.ok()) {
    if (!weir::notify::CheckLimit(*limit).ok()) std::abort();
    // What we write of it must parse again.
    const auto again = weir::notify::ParseLimit(weir::notify::LimitBody(*limit));
    if (!again.ok() || again->user_id != limit->user_id) std::abort();
  }
  if (const auto send = weir::notify::ParseSend(text, ""); send.ok()) {
    if (!weir::notify::CheckSend(*send).ok()) std::abort();
    const weir::notify::Event event = weir::notify::MakeEvent(*send, 1'000);
    const Result<weir::notify::Event> read =
        weir::notify::DecodeEvent(weir::notify::EncodeEvent(event));
    if (!read.ok() || !(*read == event)) std::abort();
  }
  if (const auto event = weir::notify::DecodeEvent(text); event.ok()) {
    const auto again = weir::notify::DecodeEvent(weir::notify::EncodeEvent(*event));
    if (!again.ok() || !(*again == *event)) std::abort();
  }
  return 0;
}
