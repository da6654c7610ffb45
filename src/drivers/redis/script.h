#pragma once

#include <string>

#include "drivers/redis/command.h"
#include "drivers/redis/connection.h"

namespace weir::redis {

/// A Lua script that is called by its digest. A server that does not know it (it was restarted, or
/// got SCRIPT FLUSH) has then done nothing, so the call is repeated with the text, which the
/// server keeps; any number of calls in flight may find that out at the same time.
///
/// Thread-safe: immutable. Must outlive the calls in flight.
class Script {
 public:
  explicit Script(std::string source);

  /// `arguments`: the number of keys, the keys, then the rest. `asking` precedes the call with
  /// ASKING, for a slot that is being migrated here. The connection must outlive the call.
  void Call(Connection& connection, Command arguments, Connection::Done done,
            bool asking = false) const;

  const std::string& digest() const noexcept { return digest_; }

 private:
  void Send(Connection& connection, const char* command, const std::string& script,
            const Command& arguments, Connection::Done done, bool asking) const;

  std::string source_;
  std::string digest_;  // SHA-1 in hexadecimal
};

}  // namespace weir::redis
