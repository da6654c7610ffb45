#include <cstddef>
#include <cstdint>
#include <string_view>

#include "notify/event.h"
#include "notify/provider.h"

// Any message on the topic: it is refused, or is an event that survives serialization and prints
// as one line.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir::notify;
  auto event = DecodeEvent({reinterpret_cast<const char*>(data), size});
  if (!event) return 0;
  const std::string line = SentLine(*event);
  if (line.find('\n') != line.size() - 1) __builtin_trap();
  auto again = DecodeEvent(EncodeEvent(*event));
  if (!again || again->id != event->id || again->user_id != event->user_id ||
      again->message != event->message) {
    __builtin_trap();
  }
  return 0;
}
