#include "drivers/postgres/url.h"

#include <libpq-fe.h>

#include <memory>
#include <sstream>
#include <string_view>

namespace weir::postgres {

std::vector<std::string> HostsOf(const std::string& url) {
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> options(
      PQconninfoParse(url.c_str(), nullptr), &PQconninfoFree);
  std::string hosts;
  for (const PQconninfoOption* option = options.get();
       option != nullptr && option->keyword != nullptr; ++option) {
    const std::string_view value = option->val == nullptr ? "" : option->val;
    if (std::string_view(option->keyword) == "hostaddr" && !value.empty()) return {};
    if (std::string_view(option->keyword) == "host") hosts = value;
  }
  std::vector<std::string> names;
  std::istringstream list(hosts);
  for (std::string host; std::getline(list, host, ',');) {
    const bool socket = host.empty() || host.front() == '/' || host.front() == '@';
    if (!socket) names.push_back(host);
  }
  return names;
}

}  // namespace weir::postgres
