#pragma once

#include <memory>
#include <string>

#include "drivers/channel.h"
#include "drivers/redis/url.h"

namespace weir::redis {

/// SUBSCRIBE and PUBLISH on a server, or on any node of a cluster: if one is lost, on the next. A
/// message that cannot be sent is lost.
std::unique_ptr<Channel> OpenChannel(Address address, std::string name,
                                     Channel::Callbacks callbacks);

}  // namespace weir::redis
