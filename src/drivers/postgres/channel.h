#pragma once

#include <memory>
#include <string>

#include "drivers/channel.h"

namespace weir::postgres {

/// LISTEN and NOTIFY. `name` is made of letters, digits and '_'. The latest few thousand messages
/// wait for a connection. What this object publishes does not come back to it.
std::unique_ptr<Channel> OpenChannel(std::string url, std::string name,
                                     Channel::Callbacks callbacks);

}  // namespace weir::postgres
