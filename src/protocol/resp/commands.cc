#include "protocol/resp/commands.h"

#include <strings.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/ascii.h"
#include "protocol/resp/throttle.h"
#include "store/reserve/reservation.h"
#include "store/wire/question.h"

namespace weir::resp {
namespace {

// Reached only if the session's fast path has found the arguments wrong.
template <ThrottleStyle kStyle>
void ThrottleError(Session& session, ReplyWriter& reply) {
  const Result<Throttle> throttle = ParseThrottle(session.command(), kStyle);
  if (!throttle.ok()) {
    reply.Error("ERR", throttle.error().message);
    return;
  }
  const Result<Quota> quota = MakeQuota(throttle->rate, kStyle);
  if (!quota.ok()) {
    reply.Error("ERR", quota.error().message);
    return;
  }
  reply.Error("ERR", "the key is longer than " + std::to_string(Batch::kMaxKeyBytes) + " bytes");
}

void Ask(Session& session, ReplyWriter& reply, store::Op op, std::int64_t least_cost) {
  const Parser& command = session.command();
  std::int64_t cost = 1;
  if (command.count() > 3) {
    WrongArity(reply, FindCommand(command[0])->name);
    return;
  }
  if (command.count() == 3) {
    const auto given = ParseInteger(command[2]);
    if (!given || *given < least_cost || *given > kMaxLimit) {
      reply.Error("ERR", "cost must be an integer between " + std::to_string(least_cost) + " and " +
                             std::to_string(kMaxLimit));
      return;
    }
    cost = *given;
  }
  session.batch().AddCheck(op, session.Lasting(1), cost, 0, Batch::CheckReply::kDecision,
                           session.client().protocol);
}

/// False, after replying so, if this client must not refund or release anything.
bool MayGiveBack(Session& session, ReplyWriter& reply, std::string_view action,
                 std::string_view key) {
  const Client& client = session.client();
  if (!client.gives_back) {
    reply.Error("NOPERM", "this command requires a key with the role check; send AUTH first");
    return false;
  }
  if (const Service& service = session.worker().service(); service.on_give_back) {
    service.on_give_back(client.peer.substr(0, client.peer.rfind(':')), action, key);
  }
  return true;
}

void WeirCheck(Session& session, ReplyWriter& reply) { Ask(session, reply, store::Op::kCharge, 0); }
void WeirPeek(Session& session, ReplyWriter& reply) { Ask(session, reply, store::Op::kPeek, 0); }
void WeirRefund(Session& session, ReplyWriter& reply) {
  if (MayGiveBack(session, reply, "check.refund", session.command()[1]))
    Ask(session, reply, store::Op::kRefund, 1);
}

void WeirOverdraw(Session& session, ReplyWriter& reply) {
  Ask(session, reply, store::Op::kOverdraw, 0);
}

void WeirReset(Session& session, ReplyWriter& reply) {
  const Client& client = session.client();
  if (!client.administrator) {
    reply.Error("NOPERM", "WEIR.RESET requires a key with the role operate; send AUTH first");
    return;
  }
  session.batch().AddReset(session.Lasting(1), *client.administrator, client.protocol);
}

void WeirRelease(Session& session, ReplyWriter& reply) {
  const auto lease = ParseInteger(session.command()[2]);
  if (!lease || *lease <= 0) {
    reply.Error("ERR", "lease must be the positive integer that WEIR.CHECK returned");
    return;
  }
  if (!MayGiveBack(session, reply, "check.release", session.command()[1])) return;
  session.batch().AddCheck(store::Op::kRelease, session.Lasting(1), 1, *lease,
                           Batch::CheckReply::kReleased, session.client().protocol);
}

/// WEIR.RESERVE key cost [seconds]
void WeirReserve(Session& session, ReplyWriter& reply) {
  const Parser& command = session.command();
  if (command.count() > 4) return WrongArity(reply, "weir.reserve");
  const auto cost = ParseInteger(command[2]);
  if (!cost || *cost < 1 || *cost > kMaxLimit) {
    return reply.Error("ERR", "cost must be an integer between 1 and " + std::to_string(kMaxLimit));
  }
  std::chrono::milliseconds lasts = store::reserve::kUsual;
  if (command.count() == 4) {
    constexpr std::int64_t kMost =
        std::chrono::duration_cast<std::chrono::seconds>(store::reserve::kLongest).count();
    const auto seconds = ParseInteger(command[3]);
    if (!seconds || *seconds < 1 || *seconds > kMost) {
      return reply.Error("ERR",
                         "seconds must be an integer between 1 and " + std::to_string(kMost));
    }
    lasts = std::chrono::seconds(*seconds);
  }
  session.batch()
      .AddCheck(store::Op::kCharge, session.Lasting(1), *cost, 0, Batch::CheckReply::kReserved,
                session.client().protocol)
      .reserve = lasts;
}

/// WEIR.SETTLE reservation cost
void WeirSettle(Session& session, ReplyWriter& reply) {
  const auto cost = ParseInteger(session.command()[2]);
  if (!cost || *cost < 0 || *cost > kMaxLimit) {
    return reply.Error("ERR", "cost must be an integer between 0 and " + std::to_string(kMaxLimit));
  }
  if (!MayGiveBack(session, reply, "check.settle", {})) return;
  session.batch()
      .AddCheck(store::Op::kSettle, {}, *cost, 0, Batch::CheckReply::kSettled,
                session.client().protocol)
      .settles = session.Lasting(1);
}

/// WEIR.APPLY bytes: from another Weir that uses this one as its store.
void WeirApply(Session& session, ReplyWriter& reply) {
  if (!session.client().stores) {
    reply.Error("NOPERM", "WEIR.APPLY needs the role store: AUTH with a key that has it first");
    return;
  }
  auto question = store::wire::Question::Read(session.command()[1]);
  if (!question.ok()) return reply.Error("ERR", question.error().message);
  session.batch().AddApply(std::move(*question));
}

constexpr std::array kCommands = {
    CommandSpec{"auth", -2, true, false, "connection", "Authenticates the connection",
                connection::Auth},
    CommandSpec{"cl.throttle", -5, false, true, "limits",
                "Charges a key under the rate given with the command",
                ThrottleError<ThrottleStyle::kCell>},
    CommandSpec{"client", -2, false, false, "connection",
                "Returns or sets information about this client", connection::ClientCommand},
    CommandSpec{"command", -1, false, false, "server", "Returns information about commands",
                about::Command},
    CommandSpec{"config", -2, false, false, "server", "Returns the settings that tools ask for",
                about::Config},
    CommandSpec{"echo", 2, false, false, "connection", "Returns its argument", connection::Echo},
    CommandSpec{"hello", -1, true, false, "connection", "Selects the protocol version",
                connection::Hello},
    CommandSpec{"info", -1, false, false, "server", "Returns information about the server",
                about::Info},
    CommandSpec{"ping", -1, false, false, "connection", "Returns PONG", connection::Ping},
    CommandSpec{"quit", -1, true, false, "connection", "Closes the connection", connection::Quit},
    CommandSpec{"reset", 1, true, false, "connection", "Resets the connection", connection::Reset},
    CommandSpec{"select", 2, false, false, "connection", "Accepts database 0, the only one",
                connection::Select},
    CommandSpec{"throttle", -5, false, true, "limits",
                "As CL.THROTTLE, with throttlecrab's burst and reply",
                ThrottleError<ThrottleStyle::kCrab>},
    CommandSpec{"weir.apply", 2, false, false, "limits",
                "Charges for another Weir, whose store this is", WeirApply},
    CommandSpec{"weir.check", -2, false, true, "limits",
                "Charges a key under the policies it matches", WeirCheck},
    CommandSpec{"weir.overdraw", -2, false, true, "limits", "Charges a key whether it fits or not",
                WeirOverdraw},
    CommandSpec{"weir.peek", -2, false, true, "limits",
                "Returns what WEIR.CHECK would return, without charging", WeirPeek},
    CommandSpec{"weir.refund", -2, false, true, "limits", "Refunds permits to a key", WeirRefund},
    CommandSpec{"weir.release", 3, false, true, "limits", "Ends a lease on a concurrency limit",
                WeirRelease},
    CommandSpec{"weir.reserve", -3, false, true, "limits",
                "Charges an estimate that WEIR.SETTLE settles", WeirReserve},
    CommandSpec{"weir.reset", 2, false, true, "limits", "Resets a key", WeirReset},
    CommandSpec{"weir.settle", 3, false, false, "limits",
                "Settles a reservation at its real cost, once", WeirSettle},
};

constexpr std::size_t kLongestName = 13;

// The first words of a command, quoted as Redis does for an unknown command.
std::string QuoteArguments(const Parser& command) {
  constexpr std::size_t kMost = 128;
  std::string quoted;
  for (std::size_t i = 1; i < command.count() && quoted.size() < kMost; ++i) {
    quoted += "'" + std::string(command[i].substr(0, kMost - quoted.size())) + "' ";
  }
  return quoted;
}

/// A line of an HTTP request. A web page can make a browser on this machine send one to this port,
/// with commands in its body; no other client sends such lines.
bool IsHttp(const Parser& command) noexcept {
  return command[0].ends_with(':') || command[command.count() - 1].starts_with("HTTP/");
}

bool ArityFits(const CommandSpec& spec, std::size_t count) noexcept {
  const auto words = static_cast<int>(count);
  return spec.arity > 0 ? words == spec.arity : words >= -spec.arity;
}

}  // namespace

std::span<const CommandSpec> AllCommands() noexcept { return kCommands; }

const CommandSpec* FindCommand(std::string_view name) noexcept {
  if (name.size() > kLongestName) {
    return nullptr;
  }
  char buffer[kLongestName];
  std::transform(name.begin(), name.end(), buffer, Lower);
  const std::string_view lower(buffer, name.size());
  const auto* const found = std::lower_bound(
      kCommands.begin(), kCommands.end(), lower,
      [](const CommandSpec& spec, std::string_view key) { return spec.name < key; });
  return found != kCommands.end() && found->name == lower ? found : nullptr;
}

void RunCommand(Session& session, Buffer& out) {
  const Parser& command = session.command();
  ReplyWriter reply(out, session.client().protocol);
  const CommandSpec* const spec = FindCommand(command[0]);
  if (spec == nullptr && IsHttp(command)) {
    reply.Error("ERR", "this port speaks the Redis protocol, not HTTP");
    session.Close();
  } else if (spec == nullptr) {
    reply.Error("ERR", "unknown command '" + std::string(command[0].substr(0, 128)) +
                           "', with args beginning with: " + QuoteArguments(command));
  } else if (!ArityFits(*spec, command.count())) {
    WrongArity(reply, spec->name);
  } else if (!session.client().authenticated && !spec->stranger) {
    reply.Error("NOAUTH", "Authentication required.");
  } else if (spec->keyed && spec->name.starts_with("weir.") && command[1].empty()) {
    // It would be no bare key, and so under no policy, not even the default one.
    reply.Error("ERR", "the key must not be empty");
  } else {
    spec->run(session, reply);
  }
}

bool SameWord(std::string_view a, std::string_view b) noexcept {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

void WrongArity(ReplyWriter& reply, std::string_view name) {
  reply.Error("ERR", "wrong number of arguments for '" + std::string(name) + "' command");
}

void UnknownSubcommand(ReplyWriter& reply, std::string_view command, std::string_view word) {
  reply.Error("ERR", "unknown subcommand '" + std::string(word.substr(0, 128)) + "'. Try " +
                         std::string(command) + " HELP.");
}

}  // namespace weir::resp
