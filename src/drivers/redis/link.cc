#include "drivers/redis/link.h"

#include <vector>

#include "drivers/redis/command.h"

namespace weir::redis {
namespace {

/// The commands that open a connection: credentials and database. Each must
/// be answered without an error before anything else is sent.
std::vector<Command> Greeting(const ConnectionOptions& options) {
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

}  // namespace

Link::Link(boost::asio::io_context& io, ConnectionOptions options)
    : io_(io),
      options_(std::move(options)),
      name_(options_.server + " " + options_.endpoint.host + ":" +
            std::to_string(options_.endpoint.port) + ": "),
      timer_(io),
      tls_(MakeTlsContext(options_.tls)),
      backoff_(options_.reconnect_delay, options_.max_reconnect_delay) {}

void Link::Open() {
  reader_ = std::make_unique<ReplyReader>();
  stream_ = std::make_unique<Stream>(
      io_, options_.endpoint, *tls_,
      Stream::Callbacks{.opened = Weak([this] { Opened(); }),
                        .read = Weak([this](std::string_view bytes) { OnBytes(bytes); }),
                        .lost = Weak([this](const std::string& why) { Lose(why); })});
}

std::size_t Link::Greet() {
  const std::vector<Command> greeting = Greeting(options_);
  for (const Command& command : greeting) stream_->Write(command);
  return greeting.size();
}

void Link::OnBytes(std::string_view bytes) {
  heard_ = true;
  if (Status fed = reader_->Feed(bytes); !fed.ok()) return Lose(fed.error().message);
  const Stream* const stream = stream_.get();
  Reply reply;
  while (true) {
    const Result<bool> complete = reader_->Next(reply);
    if (!complete.ok()) return Lose(complete.error().message);
    if (!*complete) return;
    TakeReply(std::move(reply));
    // A callback may have ended the connection.
    if (closed_ || stream_.get() != stream) return;
  }
}

}  // namespace weir::redis
