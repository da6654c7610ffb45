#pragma once

#include <memory>
#include <string>

#include "drivers/channel.h"
#include "weir/result.h"

namespace weir::mysql {

/// MySQL has no NOTIFY, so messages are rows of a small table that every node reads five times a
/// second. `name` consists of letters, digits and '_', 64 at most. Rows are deleted after a minute.
/// The latest few thousand messages wait for a connection. `migrate`: create the table if it is
/// missing; otherwise wait until another process has. Logs why the channel cannot be opened.
std::unique_ptr<Channel> OpenChannel(std::string url, std::string name,
                                     Channel::Callbacks callbacks, bool migrate = true);

/// Creates the table of messages, or brings it up to date. Blocks.
Status MigrateChannel(const std::string& url);

}  // namespace weir::mysql
