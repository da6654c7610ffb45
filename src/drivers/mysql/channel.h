#pragma once

#include <memory>
#include <string>

#include "drivers/channel.h"
#include "weir/result.h"

namespace weir::mysql {

/// There is no NOTIFY here, so messages are rows of a small table that everybody reads five times a
/// second. `name` is made of letters, digits and '_', 64 at most. Rows are deleted after a minute.
/// The latest few thousand messages wait for a connection. `migrate`: make the table if it is not
/// there; otherwise wait until somebody has. Why the channel does not open is logged.
std::unique_ptr<Channel> OpenChannel(std::string url, std::string name,
                                     Channel::Callbacks callbacks, bool migrate = true);

/// Makes the table of messages, or brings it up to date. Blocks.
Status MigrateChannel(const std::string& url);

}  // namespace weir::mysql
