#include "admin/redis/session.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "drivers/redis/slot.h"

namespace weir::policy::redis {
namespace {

using std::chrono::milliseconds;
using weir::redis::Answer;
using weir::redis::Command;
using weir::redis::ConnectionOptions;
using weir::redis::Reply;
using weir::redis::Script;

/// How often Abort is checked.
constexpr milliseconds kTurn{20};

ConnectionOptions OptionsOf(const weir::redis::Address& address, milliseconds patience) {
  ConnectionOptions options = ConnectionOptions::Of(address);
  options.command_timeout = patience;
  options.connect_timeout = std::min(patience, options.connect_timeout);
  return options;
}

bool IsLost(const Answer& answer) {
  return !answer.status.ok() && answer.reply.kind != Reply::Kind::kError;
}

}  // namespace

Session::Session(const weir::redis::Address& address, milliseconds patience) : patience_(patience) {
  ConnectionOptions options = OptionsOf(address, patience);
  if (address.cluster) {
    cluster_ = std::make_unique<weir::redis::Cluster>(io_, options, address.endpoints, 1);
  } else {
    connection_ = std::make_unique<weir::redis::Connection>(io_, std::move(options));
  }
}

Answer Session::Call(const Script& script, Keys keys, const Command& arguments) {
  if (aborted_) return {Error{Code::kUnavailable, "the service is stopping"}, {}, false};
  Command call;
  call.Add(static_cast<std::int64_t>(keys.size()));
  for (const std::string_view key : keys) call.Add(key);
  call.Append(arguments);
  // Shared with the callback, which may run after an Abort.
  auto answer = std::make_shared<std::optional<Answer>>();
  const auto done = [answer](Answer given) { *answer = std::move(given); };
  if (cluster_) {
    cluster_->Call(weir::redis::SlotOf(*keys.begin()), script, std::move(call), done);
  } else {
    script.Call(*connection_, std::move(call), done);
  }
  while (!*answer && !aborted_) {
    io_.restart();
    io_.run_one_for(kTurn);
  }
  if (!*answer) return {Error{Code::kUnavailable, "the service is stopping"}, {}, true};
  return std::move(**answer);
}

Result<Reply> Session::Read(const Script& script, Keys keys, const Command& arguments) {
  const auto began = std::chrono::steady_clock::now();
  Answer answer = Call(script, keys, arguments);
  // Does not wait again for a server that hangs.
  const bool at_once = std::chrono::steady_clock::now() - began < patience_ / 2;
  if (IsLost(answer) && at_once) answer = Call(script, keys, arguments);
  if (answer.status.ok()) return std::move(answer.reply);
  Error error = answer.status.error();
  if (error.code == Code::kDeadlineExceeded) error.code = Code::kUnavailable;
  return error;
}

}  // namespace weir::policy::redis
