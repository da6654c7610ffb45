// Lines of access logs: whatever they contain, a record's texts point to valid memory and its time
// can be represented by a clock.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "protocol/access_log/record.h"

namespace {

void Touch(std::string_view text) {
  volatile char last = 0;
  for (const char c : text) last = c;
  static_cast<void>(last);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using weir::access_log::Format;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const Format format : {Format::kAuto, Format::kCombined, Format::kJson, Format::kEnvoy}) {
    weir::access_log::LineParser parser(format);
    std::string_view rest = text;
    while (!rest.empty()) {
      const std::size_t end = rest.find('\n');
      const auto record = parser.Parse(rest.substr(0, end));
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
      if (!record) continue;
      if (record->at < 0) std::abort();
      for (const std::string_view part :
           {record->ip, record->user, record->method, record->route, record->host}) {
        Touch(part);
      }
    }
  }
  return 0;
}
