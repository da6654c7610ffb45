#include "drivers/redis/script.h"

#include <openssl/evp.h>

#include <array>
#include <memory>
#include <utility>

#include "base/hex.h"

namespace weir::redis {
namespace {

std::string Sha1(const std::string& text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned size = 0;
  EVP_Digest(text.data(), text.size(), bytes.data(), &size, EVP_sha1(), nullptr);
  std::string digits;
  for (unsigned i = 0; i < size; ++i) AppendHex(digits, bytes[i]);
  return digits;
}

bool IsUnknown(const Answer& answer) {
  return answer.reply.kind == Reply::Kind::kError && answer.reply.text.rfind("NOSCRIPT", 0) == 0;
}

}  // namespace

Script::Script(std::string source) : source_(std::move(source)), digest_(Sha1(source_)) {}

void Script::Call(Connection& connection, Command arguments, Connection::Done done,
                  bool asking) const {
  auto kept = std::make_shared<const Command>(std::move(arguments));
  auto answered = [this, &connection, kept, done = std::move(done), asking](Answer answer) mutable {
    if (!IsUnknown(answer)) return done(std::move(answer));
    Send(connection, "EVAL", source_, *kept, std::move(done), asking);
  };
  Send(connection, "EVALSHA", digest_, *kept, std::move(answered), asking);
}

void Script::Send(Connection& connection, const char* command, const std::string& script,
                  const Command& arguments, Connection::Done done, bool asking) const {
  if (asking) connection.Send({"ASKING"}, [](const Answer&) {});
  Command call;
  call.Reserve(script.size() + arguments.size() + 64);
  call.Add(command).Add(script).Append(arguments);
  connection.Send(std::move(call), std::move(done));
}

}  // namespace weir::redis
