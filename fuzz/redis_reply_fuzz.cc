// Bytes of a Redis server, whole and in pieces: whatever they are, nothing crashes, memory stays
// bounded, the replies are the same however the bytes arrive, and a store that receives them as
// the answer of its script either understands them or reports that it does not.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "drivers/redis/reply.h"
#include "drivers/redis/url.h"
#include "store/redis/call.h"

namespace {

using weir::Quota;
using weir::redis::Reply;
using weir::redis::ReplyReader;
using weir::store::Application;
using weir::store::Charge;

bool Same(const Reply& a, const Reply& b) {
  if (a.kind != b.kind || a.integer != b.integer || a.text != b.text) return false;
  if (a.elements.size() != b.elements.size()) return false;
  for (std::size_t i = 0; i < a.elements.size(); ++i) {
    if (!Same(a.elements[i], b.elements[i])) return false;
  }
  return true;
}

std::vector<Reply> Read(std::string_view bytes, std::size_t piece) {
  ReplyReader reader({.max_bytes = 4096, .max_elements = 256});
  std::vector<Reply> replies;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    if (!reader.Feed(bytes.substr(at, piece)).ok()) return replies;
    for (Reply reply;;) {
      const weir::Result<bool> complete = reader.Next(reply);
      if (!complete.ok()) return replies;
      if (!*complete) break;
      replies.push_back(std::move(reply));
    }
  }
  return replies;
}

void Decode(const Reply& reply) {
  using std::chrono::seconds;
  constexpr weir::Nanos kReference = weir::Nanos{1'700'000'000} * 1'000'000'000;
  static const Quota kQuotas[] = {
      *Quota::TokenBucket(5, 3, seconds(7)), *Quota::FixedWindow(5, seconds(10)),
      *Quota::SlidingLog(5, seconds(10)),    *Quota::SlidingCounter(5, seconds(10), 3),
      *Quota::Concurrency(5, seconds(10)),   *Quota::AnchoredWindow(5, seconds(10))};
  for (const Quota& quota : kQuotas) {
    for (const auto op : {weir::store::Op::kCharge, weir::store::Op::kPeek,
                          weir::store::Op::kRefund, weir::store::Op::kRelease}) {
      const Charge charge{"k", 2, &quota};
      weir::Decision decision;
      Application application;
      application.op = op;
      application.charges = {&charge, 1};
      application.decisions = {&decision, 1};
      Application* const applications[] = {&application};
      (void)weir::store::redis::Decode(reply, applications);
      (void)weir::store::redis::DecodeSingle(reply, application, kReference);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (size > 4096) return 0;
  const std::vector<Reply> whole = Read(bytes, size + 1);
  const std::vector<Reply> pieces = Read(bytes, 3);
  if (whole.size() != pieces.size()) std::abort();
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (!Same(whole[i], pieces[i])) std::abort();
    Decode(whole[i]);
  }
  (void)weir::redis::ParseUrl(bytes);
  return 0;
}
