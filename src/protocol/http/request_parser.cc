#include "protocol/http/request_parser.h"

#include <algorithm>
#include <cstring>

namespace weir::http {
namespace {

void Shift(std::string_view& view, const char* from, const char* to) {
  if (!view.empty()) view = {to + (view.data() - from), view.size()};
}

void MoveViews(Request& request, const char* from, const char* to) {
  Shift(request.method, from, to);
  Shift(request.path, from, to);
  Shift(request.query, from, to);
  Shift(request.body, from, to);
  for (Header& header : request.headers) {
    Shift(header.name, from, to);
    Shift(header.value, from, to);
  }
}

}  // namespace

RequestParser::RequestParser(const ParserLimits& limits, const Router* router)
    : limits_(limits),
      router_(router),
      head_limits_{.bytes = limits.header_bytes,
                   .target_bytes = limits.header_bytes,
                   .fields = limits.headers,
                   .host_required = false} {}

RequestParser::Outcome RequestParser::Parse(std::span<char> bytes) {
  if (!header_complete_) {
    base_ = bytes.data();
    if (const Outcome outcome = ReadHead(bytes); outcome != Outcome::kComplete) return outcome;
  } else if (base_ != bytes.data()) {
    MoveViews(request_, base_, bytes.data());
    base_ = bytes.data();
  }
  return ReadBody(bytes);
}

RequestParser::Outcome RequestParser::ReadHead(std::span<char> bytes) {
  const HeadResult result = ParseRequestHead({bytes.data(), bytes.size()}, head_limits_, head_);
  if (result.failed()) return Fail(result.error_status, result.error);
  if (!result.complete()) return Outcome::kNeedMore;
  header_complete_ = true;
  consumed_ = result.size;
  Describe();
  const Framing framing = head_.framing();
  most_body_ = limits_.body_bytes;
  const bool may_exceed = framing.length > most_body_ || framing.kind == Framing::Kind::kChunked;
  if (may_exceed && router_ != nullptr && router_->TakesLarge(request_.path)) {
    most_body_ = limits_.large_body_bytes;
  }
  if (framing.length > most_body_) return Fail(413, "the body is too large");
  scanner_.Start(framing);
  return Outcome::kComplete;
}

/// Fills in the head as handlers see it.
void RequestParser::Describe() {
  request_.method = head_.method;
  const std::string_view target = head_.target.substr(0, head_.target.find('#'));
  const std::size_t query = std::min(target.find('?'), target.size());
  request_.path = target.substr(0, query);
  request_.query = target.substr(std::min(query + 1, target.size()));
  request_.keep_alive = !head_.close;
  request_.http_1_0 = head_.minor_version == 0;
  for (const Field& field : head_.fields) request_.headers.push_back({field.name, field.value});
}

RequestParser::Outcome RequestParser::ReadBody(std::span<char> bytes) {
  while (!scanner_.done() && consumed_ < bytes.size()) {
    char* const next = bytes.data() + consumed_;
    std::size_t size = 1;  // of what frames the body
    if (scanner_.in_data()) {
      size = static_cast<std::size_t>(
          std::min<std::uint64_t>(scanner_.expected(), bytes.size() - consumed_));
      if (request_.body.size() + size > most_body_) return Fail(413, "the body is too large");
      Join(next, size);
    }
    consumed_ += scanner_.Take({next, size});
    if (scanner_.failed()) return Fail(400, "the chunked body is malformed");
  }
  return scanner_.done() ? Outcome::kComplete : Outcome::kNeedMore;
}

/// The body so far ends before this piece, perhaps with a chunk's header between: closes the gap.
void RequestParser::Join(char* piece, std::size_t size) {
  if (request_.body.empty()) {
    request_.body = {piece, size};
    return;
  }
  char* const end = piece - (piece - request_.body.data()) + request_.body.size();
  if (end != piece) std::memmove(end, piece, size);
  request_.body = {request_.body.data(), request_.body.size() + size};
}

void RequestParser::Next() {
  request_.method = request_.path = request_.query = request_.body = {};
  request_.headers.clear();
  request_.params.clear();
  request_.caller.clear();
  request_.key_unchecked = false;
  head_.expects_continue = false;
  consumed_ = 0;
  base_ = nullptr;
  header_complete_ = false;
}

RequestParser::Outcome RequestParser::Fail(int status, const char* why) {
  failure_ = {0, status, why};
  return Outcome::kFailed;
}

}  // namespace weir::http
