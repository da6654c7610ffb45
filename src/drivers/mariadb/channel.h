#pragma once

#include <memory>
#include <string>

#include "drivers/channel.h"

namespace weir::mariadb {

/// There is no NOTIFY here, so messages are rows of a small table that everybody reads five times a
/// second. `name` is made of letters, digits and '_', 64 at most. The table is made if it is not
/// there; rows are deleted after a minute. The latest few thousand messages wait for a connection.
std::unique_ptr<Channel> OpenChannel(std::string url, std::string name,
                                     Channel::Callbacks callbacks);

}  // namespace weir::mariadb
