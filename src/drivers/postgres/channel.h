#pragma once

#include <memory>
#include <string>

#include "drivers/channel.h"

namespace weir::postgres {

/// LISTEN and NOTIFY. `name` consists of letters, digits and '_'. The latest few thousand messages
/// wait for a connection. This object does not receive what it publishes.
std::unique_ptr<Channel> OpenChannel(std::string url, std::string name,
                                     Channel::Callbacks callbacks);

}  // namespace weir::postgres
