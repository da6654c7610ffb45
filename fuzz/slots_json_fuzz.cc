#include <cstddef>
#include <cstdint>
#include <string_view>

#include "slots/api/slots_json.h"

// Any request body of a client: it is refused or read, never more.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  static_cast<void>(weir::slots::ParseAsk(body));
  static_cast<void>(weir::slots::ParseBatch(body));
  static_cast<void>(weir::slots::ParseReschedule(body, "e"));
  static_cast<void>(weir::slots::ParseConfig(body));
  // What can be parsed can be written and parsed again.
  if (auto instant = weir::slots::ParseInstant(body); instant.ok()) {
    auto again = weir::slots::ParseInstant(weir::slots::FormatInstant(*instant));
    if (!again.ok() || *again != *instant) __builtin_trap();
  }
  if (auto duration = weir::slots::ParseDuration(body); duration.ok()) {
    auto again = weir::slots::ParseDuration(weir::slots::FormatDuration(*duration));
    if (!again.ok() || *again != *duration) __builtin_trap();
  }
  return 0;
}
