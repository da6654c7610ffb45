// Bytes of a client or an upstream as the proxy reads them: heads, then a body split in two.
// What was accepted must mean the same to the next server, so a forwarded head is parsed again.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "filter/route.h"
#include "protocol/http/body.h"
#include "protocol/http/head.h"
#include "proxy/rewrite.h"

namespace {

using weir::http::BodyScanner;
using weir::http::Framing;
using weir::http::HeadResult;
using weir::http::RequestHead;
using weir::http::ResponseHead;

void Require(bool condition) {
  if (!condition) std::abort();
}

bool Same(const Framing& a, const Framing& b) { return a.kind == b.kind && a.length == b.length; }

/// Two pieces must be scanned like one.
void ScanBody(const Framing& framing, std::string_view bytes) {
  BodyScanner whole;
  whole.Start(framing);
  const std::size_t taken = whole.Take(bytes);
  Require(taken <= bytes.size());

  BodyScanner pieces;
  pieces.Start(framing);
  const std::string_view first = bytes.substr(0, bytes.size() / 3);
  std::size_t sum = pieces.Take(first);
  if (sum == first.size()) sum += pieces.Take(bytes.substr(first.size()));
  Require(pieces.done() == whole.done() && pieces.failed() == whole.failed());
  if (!whole.failed()) Require(sum == taken);
}

void ReadRequest(std::string_view bytes) {
  RequestHead head;
  const HeadResult result = ParseRequestHead(bytes, {}, head);
  if (!result.complete()) return;
  Require(result.size <= bytes.size());
  ScanBody(head.framing(), bytes.substr(result.size));
  weir::filter::Routes routes;
  if (routes.Read(head.target) == nullptr) Require(!routes.names().empty());

  std::string forwarded;
  weir::proxy::WriteRequestHead(head, {"192.0.2.1", (bytes.size() & 1U) != 0}, forwarded);
  RequestHead again;
  // Our own fields are added to those that were accepted.
  const HeadResult reread = ParseRequestHead(
      forwarded, {.bytes = 1U << 20U, .target_bytes = 1U << 20U, .fields = 1000}, again);
  Require(reread.size == forwarded.size());
  Require(again.method == head.method && again.target == head.target);
  Require(Same(again.framing(), head.framing()));
}

void ReadResponse(std::string_view bytes) {
  ResponseHead head;
  const HeadResult result = ParseResponseHead(bytes, {}, head);
  if (!result.complete()) return;
  Require(result.size <= bytes.size());
  ScanBody(head.framing(false), bytes.substr(result.size));
  std::string back;
  weir::proxy::WriteResponseHead(head, "X-RateLimit-Limit: 1\r\n", {}, back);
  ResponseHead again;
  Require(ParseResponseHead(back, {.bytes = 1U << 20U, .fields = 1000}, again).size == back.size());
  Require(again.status == head.status && Same(again.framing(false), head.framing(false)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  ReadRequest(bytes);
  ReadResponse(bytes);
  return 0;
}
