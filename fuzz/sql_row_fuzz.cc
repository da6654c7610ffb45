// The bytes of a row, which are untrusted: what is accepted must equal what would be written back,
// and every step must tolerate it.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "algorithm/algorithms.h"
#include "store/sql/row.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using weir::store::sql::RowState;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  (void)weir::store::sql::Summarize("key", bytes);
  weir::Result<RowState> row = RowState::Parse("key", bytes);
  if (!row.ok()) return 0;
  for (const weir::algorithm::Descriptor& each : weir::algorithm::kAlgorithms) {
    if (!weir::algorithm::Valid(each.algorithm, (*row)[each.algorithm])) std::abort();
  }
  (void)row->FreshAt();
  const std::string again = row->Encode("key");
  const weir::Result<RowState> reread = RowState::Parse("key", again);
  if (!reread.ok() || reread->Encode("key") != again) std::abort();
  return 0;
}
