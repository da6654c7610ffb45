// The text that identifies a reservation: it is refused, or it stands for a bounded reservation
// that is written as the same text.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/base64url.h"
#include "store/reserve/reservation.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir::store::reserve;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  static_cast<void>(Read(bytes));
  const std::string text = weir::Base64UrlEncoded(bytes);
  const weir::Result<Reservation> read = Read(text);
  if (!read.ok()) return 0;
  std::size_t shares = 0;
  for (std::size_t i = 0; i < read->groups.size(); ++i) {
    shares += read->groups[i].shares.size();
    if (RecordKey(*read, i).empty()) __builtin_trap();
    for (const Share& share : read->groups[i].shares) {
      static_cast<void>(ChangeOf(*read, share, weir::kMaxLimit));
    }
  }
  if (shares > kMaxShares) __builtin_trap();
  const weir::Result<Reservation> again = Read(Write(*read));
  if (!again.ok() || Write(*again) != Write(*read)) __builtin_trap();
  return 0;
}
