// Commands by which a client and the door introduce themselves. They concern only the
// connection.

#include <algorithm>
#include <chrono>
#include <string>

#include "protocol/resp/commands.h"
#include "protocol/resp/throttle.h"

namespace weir::resp::connection {
namespace {

constexpr std::string_view kWrongPassword = "invalid username-password pair or user is disabled.";
constexpr std::size_t kMaxNameSize = 256;

// There is one user, as in a Redis that has only a password.
bool Login(Session& session, std::string_view user, std::string_view password) {
  return user == "default" && session.LogIn(password);
}

bool IsName(std::string_view text) noexcept {
  return text.size() <= kMaxNameSize &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '!' && c <= '~'; });
}

bool SetName(Client& client, std::string_view name, ReplyWriter& reply) {
  if (!IsName(name)) {
    reply.Error("ERR", "Client names cannot contain spaces, newlines or special characters.");
    return false;
  }
  client.name = name;
  return true;
}

std::string Describe(const Client& client) {
  const auto age = std::chrono::steady_clock::now() - client.connected;
  std::string line = "id=" + std::to_string(client.id) + " addr=" + client.peer +
                     " laddr=" + client.local + " name=" + client.name + " age=" +
                     std::to_string(std::chrono::duration_cast<std::chrono::seconds>(age).count());
  line +=
      " idle=0 flags=N db=0 user=default resp=" + std::to_string(static_cast<int>(client.protocol));
  line += " lib-name=" + client.library_name + " lib-ver=" + client.library_version + "\n";
  return line;
}

void SetInfo(Session& session, ReplyWriter& reply) {
  const Parser& command = session.command();
  if (command.count() != 4) {
    WrongArity(reply, "client|setinfo");
    return;
  }
  const bool name = SameWord(command[2], "lib-name");
  if (!name && !SameWord(command[2], "lib-ver")) {
    reply.Error("ERR", "Unrecognized option '" + std::string(command[2].substr(0, 128)) + "'");
    return;
  }
  if (!IsName(command[3])) {
    reply.Error("ERR",
                "lib-name and lib-ver cannot contain spaces, newlines or special characters.");
    return;
  }
  Client& client = session.client();
  (name ? client.library_name : client.library_version) = command[3];
  reply.Ok();
}

void ClientHelp(ReplyWriter& reply) {
  constexpr std::string_view kLines[] = {
      "CLIENT GETNAME | SETNAME <name> | ID | INFO | LIST | SETINFO <LIB-NAME|LIB-VER> <value>",
      "CLIENT LIST shows this connection. NO-EVICT and NO-TOUCH are accepted and change nothing."};
  reply.Array(std::size(kLines));
  for (const std::string_view line : kLines) {
    reply.Simple(line);
  }
}

struct HelloOptions {
  Protocol protocol = Protocol::kResp2;
  bool auth = false;
  std::string_view user;
  std::string_view password;
  bool rename = false;
  std::string_view name;
};

// Reads the arguments of HELLO; if they are wrong, replies so and returns false.
bool ReadHello(const Parser& command, HelloOptions* options, ReplyWriter& reply) {
  if (command.count() > 1) {
    const auto version = ParseInteger(command[1]);
    if (!version) {
      reply.Error("ERR", "Protocol version is not an integer or out of range");
      return false;
    }
    if (*version != 2 && *version != 3) {
      reply.Error("NOPROTO", "unsupported protocol version");
      return false;
    }
    options->protocol = static_cast<Protocol>(*version);
  }
  std::size_t i = 2;
  while (i < command.count()) {
    if (SameWord(command[i], "AUTH") && i + 2 < command.count()) {
      options->auth = true;
      options->user = command[i + 1];
      options->password = command[i + 2];
      i += 3;
    } else if (SameWord(command[i], "SETNAME") && i + 1 < command.count()) {
      options->rename = true;
      options->name = command[i + 1];
      i += 2;
    } else {
      reply.Error("ERR",
                  "Syntax error in HELLO option '" + std::string(command[i].substr(0, 128)) + "'");
      return false;
    }
  }
  return true;
}

void Introduce(const Client& client, const Service& service, ReplyWriter& reply) {
  reply.Map(7);
  reply.Bulk("server");
  reply.Bulk("weir");
  reply.Bulk("version");
  reply.Bulk(service.version);
  reply.Bulk("proto");
  reply.Integer(static_cast<int>(client.protocol));
  reply.Bulk("id");
  reply.Integer(client.id);
  reply.Bulk("mode");
  reply.Bulk("standalone");
  reply.Bulk("role");
  reply.Bulk("master");
  reply.Bulk("modules");
  reply.Array(0);
}

}  // namespace

void Auth(Session& session, ReplyWriter& reply) {
  const Parser& command = session.command();
  if (command.count() > 3) {
    reply.Error("ERR", "syntax error");
    return;
  }
  const bool named = command.count() == 3;
  const Service& service = session.worker().service();
  if (!named && !service.authenticate && !service.administrator) {
    reply.Error(
        "ERR",
        "AUTH <password> called without any password configured for the default user. Are you "
        "sure your configuration is correct?");
    return;
  }
  if (Login(session, named ? command[1] : "default", command[named ? 2 : 1])) {
    reply.Ok();
  } else {
    reply.Error("WRONGPASS", kWrongPassword);
  }
}

void ClientCommand(Session& session, ReplyWriter& reply) {
  const Parser& command = session.command();
  Client& client = session.client();
  const std::string_view word = command[1];
  if (SameWord(word, "SETNAME") && command.count() == 3) {
    if (SetName(client, command[2], reply)) reply.Ok();
  } else if (SameWord(word, "GETNAME")) {
    client.name.empty() ? reply.Null() : reply.Bulk(client.name);
  } else if (SameWord(word, "ID")) {
    reply.Integer(client.id);
  } else if (SameWord(word, "INFO") || SameWord(word, "LIST")) {
    reply.Verbatim(Describe(client));
  } else if (SameWord(word, "SETINFO")) {
    SetInfo(session, reply);
  } else if (SameWord(word, "NO-EVICT") || SameWord(word, "NO-TOUCH")) {
    reply.Ok();
  } else if (SameWord(word, "HELP")) {
    ClientHelp(reply);
  } else if (SameWord(word, "SETNAME")) {
    WrongArity(reply, "client|setname");
  } else {
    UnknownSubcommand(reply, "CLIENT", word);
  }
}

void Echo(Session& session, ReplyWriter& reply) { reply.Bulk(session.command()[1]); }

void Hello(Session& session, ReplyWriter& reply) {
  HelloOptions options;
  Client& client = session.client();
  options.protocol = client.protocol;
  if (!ReadHello(session.command(), &options, reply)) {
    return;
  }
  if (options.auth && !Login(session, options.user, options.password)) {
    reply.Error("WRONGPASS", kWrongPassword);
    return;
  }
  if (!client.authenticated) {
    reply.Error(
        "NOAUTH",
        "HELLO must be called with the client already authenticated, otherwise the HELLO <proto> "
        "AUTH <user> <pass> option can be used to authenticate the client and select the RESP "
        "protocol version at the same time");
    return;
  }
  if (options.rename && !SetName(client, options.name, reply)) {
    return;
  }
  client.protocol = options.protocol;
  reply.SetProtocol(options.protocol);
  Introduce(client, session.worker().service(), reply);
}

void Ping(Session& session, ReplyWriter& reply) {
  const Parser& command = session.command();
  if (command.count() > 2) {
    WrongArity(reply, "ping");
  } else if (command.count() == 2) {
    reply.Bulk(command[1]);
  } else {
    reply.Simple("PONG");
  }
}

void Quit(Session& session, ReplyWriter& reply) {
  reply.Ok();
  session.Close();
}

void Reset(Session& session, ReplyWriter& reply) {
  Client& client = session.client();
  client.name.clear();
  client.protocol = Protocol::kResp2;
  session.LogOut();
  reply.SetProtocol(Protocol::kResp2);
  reply.Simple("RESET");
}

void Select(Session& session, ReplyWriter& reply) {
  const auto index = ParseInteger(session.command()[1]);
  if (!index) {
    reply.Error("ERR", "value is not an integer or out of range");
  } else if (*index != 0) {
    reply.Error("ERR", "DB index is out of range");
  } else {
    reply.Ok();
  }
}

}  // namespace weir::resp::connection
