// Commands that tools send to learn which server they are connected to.

#include <array>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "protocol/resp/commands.h"

namespace weir::resp::about {
namespace {

// One entry of COMMAND INFO, in Redis' layout: ten fields, of which clients read the first six.
void WriteInfo(const CommandSpec& spec, ReplyWriter& reply) {
  reply.Array(10);
  reply.Bulk(spec.name);
  reply.Integer(spec.arity);
  reply.Array(1);
  reply.Simple(spec.keyed ? "write" : "fast");
  const int key = spec.keyed ? 1 : 0;
  reply.Integer(key);
  reply.Integer(key);
  reply.Integer(key);
  for (int i = 0; i < 4; ++i) {
    reply.Array(0);  // categories, tips, key specifications, subcommands
  }
}

void WriteDocs(const CommandSpec& spec, ReplyWriter& reply) {
  reply.Bulk(spec.name);
  reply.Map(3);
  reply.Bulk("summary");
  reply.Bulk(spec.summary);
  reply.Bulk("since");
  reply.Bulk("0.1.0");
  reply.Bulk("group");
  reply.Bulk(spec.group);
}

void CommandDocs(const Parser& command, ReplyWriter& reply) {
  std::vector<const CommandSpec*> chosen;
  for (std::size_t i = 2; i < command.count(); ++i) {
    if (const CommandSpec* spec = FindCommand(command[i])) {
      chosen.push_back(spec);
    }
  }
  if (command.count() == 2) {
    for (const CommandSpec& spec : AllCommands()) {
      chosen.push_back(&spec);
    }
  }
  reply.Map(chosen.size());
  for (const CommandSpec* spec : chosen) {
    WriteDocs(*spec, reply);
  }
}

void AllInfo(ReplyWriter& reply) {
  reply.Array(AllCommands().size());
  for (const CommandSpec& spec : AllCommands()) {
    WriteInfo(spec, reply);
  }
}

void CommandInfo(const Parser& command, ReplyWriter& reply) {
  if (command.count() == 2) {
    AllInfo(reply);
    return;
  }
  reply.Array(command.count() - 2);
  for (std::size_t i = 2; i < command.count(); ++i) {
    const CommandSpec* const spec = FindCommand(command[i]);
    spec != nullptr ? WriteInfo(*spec, reply) : reply.Null();
  }
}

std::string Sections(const Service& service, const std::string& local) {
  const auto up = std::chrono::steady_clock::now() - service.started;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(up).count();
  const auto number = [](const std::atomic<std::int64_t>& value) {
    return std::to_string(value.load(std::memory_order_relaxed));
  };
  // Clients decide by redis_version what they may send; this door implements the 7.0 dialect.
  std::string text = "# Server\r\nredis_version:7.0.0\r\nserver_name:weir\r\n";
  text += "weir_version:" + service.version + "\r\nredis_mode:standalone\r\n";
  text += "tcp_port:" + local.substr(local.rfind(':') + 1) + "\r\n";
  text += "uptime_in_seconds:" + std::to_string(seconds) + "\r\n";
  text += "\r\n# Clients\r\nconnected_clients:" + number(service.connections) + "\r\n";
  text += "\r\n# Stats\r\ntotal_connections_received:" + number(service.connections_total) + "\r\n";
  text += "total_commands_processed:" + number(service.commands_total) + "\r\n";
  text += "\r\n# Replication\r\nrole:master\r\nconnected_slaves:0\r\n";
  text += "\r\n# Cluster\r\ncluster_enabled:0\r\n";
  return text;
}

// Only what benchmarks and clients query before they start. None of it is secret.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kSettings = {{
    {"appendonly", "no"},
    {"databases", "1"},
    {"save", ""},
    {"maxmemory", "0"},
}};

}  // namespace

void Command(Session& session, ReplyWriter& reply) {
  const Parser& command = session.command();
  if (command.count() == 1) {
    AllInfo(reply);
  } else if (SameWord(command[1], "COUNT")) {
    reply.Integer(static_cast<std::int64_t>(AllCommands().size()));
  } else if (SameWord(command[1], "INFO")) {
    CommandInfo(command, reply);
  } else if (SameWord(command[1], "DOCS")) {
    CommandDocs(command, reply);
  } else if (SameWord(command[1], "LIST")) {
    reply.Array(AllCommands().size());
    for (const CommandSpec& spec : AllCommands()) {
      reply.Bulk(spec.name);
    }
  } else {
    UnknownSubcommand(reply, "COMMAND", command[1]);
  }
}

void Config(Session& session, ReplyWriter& reply) {
  const Parser& command = session.command();
  if (!SameWord(command[1], "GET")) {
    UnknownSubcommand(reply, "CONFIG", command[1]);
    return;
  }
  if (command.count() < 3) {
    WrongArity(reply, "config|get");
    return;
  }
  std::vector<const std::pair<std::string_view, std::string_view>*> found;
  for (const auto& setting : kSettings) {
    for (std::size_t i = 2; i < command.count(); ++i) {
      if (SameWord(command[i], setting.first) || command[i] == "*") {
        found.push_back(&setting);
        break;
      }
    }
  }
  reply.Map(found.size());
  for (const auto* setting : found) {
    reply.Bulk(setting->first);
    reply.Bulk(setting->second);
  }
}

void Info(Session& session, ReplyWriter& reply) {
  reply.Verbatim(Sections(session.worker().service(), session.client().local));
}

}  // namespace weir::resp::about
