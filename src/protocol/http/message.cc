#include "protocol/http/message.h"

#include "base/ascii.h"

namespace weir::http {

std::string_view Request::Find(std::string_view name) const noexcept {
  for (const Header& header : headers) {
    if (EqualsIgnoringCase(header.name, name)) return header.value;
  }
  return {};
}

}  // namespace weir::http
