#include "limiter/permits.h"

#include <algorithm>

#include "base/number.h"
#include "limiter/limiter.h"

namespace weir::limiter {
namespace {

constexpr std::size_t kTagDigits = 8;
constexpr std::size_t kLeaseDigits = kPermitDigits - kTagDigits;

void AppendHex(std::string& out, std::uint64_t number, std::size_t digits) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (std::size_t i = digits; i-- > 0;) out += kDigits[(number >> (4 * i)) & 15];
}

template <typename Number>
bool ReadHex(std::string_view text, Number& number) noexcept {
  const auto read = ParseNumber<Number>(text, 16);
  if (read) number = *read;
  return read.has_value();
}

}  // namespace

std::uint32_t BucketTag(std::string_view key) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : key) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return static_cast<std::uint32_t>(hash ^ (hash >> 32));
}

void AppendPermits(std::string& out, const Check& check) {
  if (check.op != store::Op::kCharge || !check.decision.allowed()) return;
  const auto& verdicts = check.verdicts;
  for (auto it = verdicts.begin(); it != verdicts.end(); ++it) {
    if (it->decision.lease == 0) continue;
    // Descriptors that lead to the same bucket have one permit.
    const auto same = [it](const PolicyVerdict& earlier) {
      return earlier.decision.lease == it->decision.lease && earlier.key == it->key;
    };
    if (std::any_of(verdicts.begin(), it, same)) continue;
    AppendHex(out, BucketTag(it->key), kTagDigits);
    AppendHex(out, static_cast<std::uint64_t>(it->decision.lease), kLeaseDigits);
  }
}

Status ParsePermits(std::string_view text, std::vector<Permit>& permits) {
  permits.clear();
  const Error wrong{Code::kInvalidArgument, "must be the string that the check returned"};
  if (text.empty() || text.size() % kPermitDigits != 0) return wrong;
  if (text.size() > kMaxPermits * kPermitDigits) return wrong;
  for (; !text.empty(); text.remove_prefix(kPermitDigits)) {
    Permit permit;
    if (!ReadHex(text.substr(0, kTagDigits), permit.bucket) ||
        !ReadHex(text.substr(kTagDigits, kLeaseDigits), permit.lease) || permit.lease <= 0) {
      permits.clear();
      return wrong;
    }
    permits.push_back(permit);
  }
  return {};
}

}  // namespace weir::limiter
