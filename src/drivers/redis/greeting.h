#pragma once

#include <vector>

#include "drivers/redis/command.h"
#include "drivers/redis/connection.h"

namespace weir::redis {

/// The commands with which a connection begins: who we are, and which database we mean. Each must
/// be answered without an error before anything else is sent.
inline std::vector<Command> Greeting(const ConnectionOptions& options) {
  std::vector<Command> commands;
  if (!options.password.empty() || !options.user.empty()) {
    Command auth{"AUTH"};
    if (!options.user.empty()) auth.Add(options.user);
    commands.push_back(auth.Add(options.password));
  }
  if (options.database != 0) {
    commands.push_back(Command{"SELECT"}.Add(std::int64_t{options.database}));
  }
  return commands;
}

}  // namespace weir::redis
