// JSON bodies of checks. The first byte chooses the operation.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include "base/json_writer.h"
#include "protocol/http/check_reader.h"
#include "protocol/http/response_writer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static weir::http::CheckReader reader;
  static weir::http::CheckBatch batch;
  if (size == 0) return 0;
  // A copy of exactly the promised size, so that the sanitizer sees any byte read beyond it.
  std::string body(reinterpret_cast<const char*>(data) + 1, size - 1);
  body.append(weir::http::kBodyPadding, '\0');
  body.shrink_to_fit();
  using weir::store::Op;
  using Ask = weir::http::CheckReader::Ask;
  static const Ask kAsks[] = {Op::kCharge,  Op::kPeek,   Op::kRefund,
                              Op::kRelease, Op::kSettle, Ask(Op::kCharge, true)};
  const Ask& ask = kAsks[data[0] % std::size(kAsks)];
  const auto found = reader.Read(std::string_view(body).substr(0, size - 1), ask, batch);
  if (!found.ok() && batch.size() != 0) __builtin_trap();
  if (found.ok() && (found->count == 0 || found->count > weir::http::kMaxChecks)) __builtin_trap();
  std::string out;
  weir::JsonWriter json(out);
  json.BeginArray();
  for (const auto& check : batch.checks()) weir::http::AppendDecision(json, check);
  json.EndArray();
  batch.Clear();
  return 0;
}
