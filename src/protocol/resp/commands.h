#pragma once

// The commands of the door, by name. CL.THROTTLE's fast path is in session.cc; here are the rest,
// and CL.THROTTLE's errors when its arguments are wrong.

#include <span>
#include <string_view>

#include "protocol/resp/buffer.h"
#include "protocol/resp/reply.h"
#include "protocol/resp/session.h"

namespace weir::resp {

/// One command as COMMAND describes it, and its handler.
struct CommandSpec {
  std::string_view name;  ///< lower case
  /// As Redis counts: all words of the command; negative: at least that many.
  int arity = 0;
  bool stranger = false;  ///< allowed before AUTH
  bool keyed = false;     ///< its first argument is a key
  std::string_view group;
  std::string_view summary;
  void (*run)(Session& session, ReplyWriter& reply) = nullptr;
};

/// All commands, sorted by name.
std::span<const CommandSpec> AllCommands() noexcept;
/// Null if there is no such command; ignores case.
const CommandSpec* FindCommand(std::string_view name) noexcept;

/// Runs session.command(): writes its reply to `out`, or adds a question to the session's batch.
void RunCommand(Session& session, Buffer& out);

// Handlers, by file.

namespace connection {  // connection.cc
void Auth(Session& session, ReplyWriter& reply);
void ClientCommand(Session& session, ReplyWriter& reply);
void Echo(Session& session, ReplyWriter& reply);
void Hello(Session& session, ReplyWriter& reply);
void Ping(Session& session, ReplyWriter& reply);
void Quit(Session& session, ReplyWriter& reply);
void Reset(Session& session, ReplyWriter& reply);
void Select(Session& session, ReplyWriter& reply);
}  // namespace connection

namespace about {  // about.cc
void Command(Session& session, ReplyWriter& reply);
void Config(Session& session, ReplyWriter& reply);
void Info(Session& session, ReplyWriter& reply);
}  // namespace about

/// True if the two are equal ignoring the case of ASCII letters.
bool SameWord(std::string_view a, std::string_view b) noexcept;

/// "wrong number of arguments for '<name>' command"
void WrongArity(ReplyWriter& reply, std::string_view name);
/// "unknown subcommand '<word>'. Try <command> HELP."
void UnknownSubcommand(ReplyWriter& reply, std::string_view command, std::string_view word);

}  // namespace weir::resp
