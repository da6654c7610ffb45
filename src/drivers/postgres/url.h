#pragma once

#include <string>
#include <vector>

namespace weir::postgres {

/// The names of hosts in a postgres:// URL or in libpq's key=value form; none if there are only
/// addresses and sockets, or if libpq does not understand it.
std::vector<std::string> HostsOf(const std::string& url);

}  // namespace weir::postgres
