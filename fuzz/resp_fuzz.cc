// Bytes of a Redis client, whole and in pieces, answered immediately and late: whatever they are,
// nothing crashes, memory stays bounded and the replies are the same however the bytes arrive.

#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "protocol/resp/session.h"
#include "unit/protocol/resp/bucket_limiter.h"

namespace {

using weir::resp::BucketLimiter;
using weir::resp::Buffer;
using weir::resp::Service;
using weir::resp::Session;
using weir::resp::Worker;

constexpr std::size_t kMaxBuffered = 2 * 1024 * 1024;

void Require(bool condition) {
  if (!condition) std::abort();
}

/// What sessions share. Kept between inputs, as a server keeps it between connections: a batch has
/// room for 1024 questions, and allocating that costs more than most inputs.
struct Door {
  Door(bool later, bool locked) {
    limiter.later = later;
    if (locked) service.authenticate = [](std::string_view word) { return word == "secret"; };
  }

  BucketLimiter limiter;
  Service service;
  Worker worker{service, limiter};
};

std::string Converse(std::string_view bytes, std::size_t piece, Door& door) {
  BucketLimiter& limiter = door.limiter;
  limiter.Forget();
  door.service.next_id = 1;
  Session session(door.worker, "peer", "local", [] {});
  Buffer in;
  Buffer out;
  std::string replies;
  while (!bytes.empty() && !session.closing()) {
    const std::string_view next = bytes.substr(0, piece);
    bytes.remove_prefix(next.size());
    in.Append(next);
    std::size_t used = 0;
    do {
      used = session.Feed(in.view(), out);
      while (session.waiting()) limiter.AnswerAll();
      in.Consume(used);
      replies += out.view();
      out.Clear();
    } while (used > 0 && !session.closing());
    Require(in.size() <= kMaxBuffered);
  }
  return replies;
}

// Some answers contain the time or count what came before.
bool Repeatable(std::string_view bytes) {
  std::string lower;
  for (const char c : bytes)
    lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower.find("info") == std::string::npos && lower.find("list") == std::string::npos;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const bool locked = (data[0] & 1) != 0;
  const std::size_t piece = 1 + data[1] % 32;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  static Door at_once[] = {{false, false}, {false, true}};
  static Door later[] = {{true, false}, {true, true}};
  const std::string whole = Converse(bytes, bytes.size() + 1, at_once[locked ? 1 : 0]);
  const std::string pieces = Converse(bytes, piece, later[locked ? 1 : 0]);
  Require(!Repeatable(bytes) || whole == pieces);
  return 0;
}
