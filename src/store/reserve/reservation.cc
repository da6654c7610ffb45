// The bytes behind the text: a version, then what the record's digest covers (nonce, cost, how long
// it lasts, the groups with their shares), then what is known only after the charge (a lease for
// each group, a stamp for each share). Numbers are LEB128 varints, those that may be negative 8
// bytes; a string is its length and its bytes.

#include "store/reserve/reservation.h"

#include <openssl/rand.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "algorithm/algorithms.h"
#include "algorithm/settle.h"
#include "base/base64url.h"
#include "base/hex.h"
#include "base/int128.h"
#include "drivers/digest/sha256.h"
#include "store/wire/bytes.h"

namespace weir::store::reserve {
namespace {

constexpr char kVersion = 2;
// From before buckets noted what a settlement needs. Such texts are still read, but since the
// version is in the digest that names their records, they find none: they count as spent.
constexpr char kWithoutMarks = 1;
constexpr std::size_t kDigestBytes = 16;

using wire::PutFixed;
using wire::PutText;
using wire::Reader;

void PutNumber(std::string& out, std::int64_t number) {
  wire::PutNumber(out, static_cast<std::uint64_t>(number));
}

std::int64_t TakeNumber(Reader& in) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(in.Number(kMost));
}

void PutQuota(std::string& out, const Quota& quota) {
  const algorithm::Numbers numbers = algorithm::NumbersOf(quota);
  out += static_cast<char>(quota.algorithm());
  PutNumber(out, numbers.limit);
  PutNumber(out, numbers.refill);
  PutNumber(out, numbers.period.count());
  PutNumber(out, numbers.window.count());
  PutNumber(out, numbers.buckets);
}

std::string Body(const Reservation& reservation) {
  std::string out(1, kVersion);
  out.append(reservation.nonce.begin(), reservation.nonce.end());
  PutNumber(out, reservation.cost);
  PutNumber(out, reservation.lasts.count());
  PutNumber(out, static_cast<std::int64_t>(reservation.groups.size()));
  for (const Group& group : reservation.groups) {
    PutNumber(out, static_cast<std::int64_t>(group.shares.size()));
    for (const Share& share : group.shares) {
      PutText(out, share.key);
      PutText(out, share.policy);
      PutQuota(out, share.quota);
      PutNumber(out, share.factor);
      PutNumber(out, share.limit);
      out += static_cast<char>(share.shadow ? 1 : 0);
    }
  }
  return out;
}

std::optional<Quota> ReadQuota(Reader& in) {
  const algorithm::Descriptor* kind = algorithm::FindTag(in.Byte());
  algorithm::Numbers numbers;
  numbers.limit = TakeNumber(in);
  numbers.refill = TakeNumber(in);
  numbers.period = std::chrono::nanoseconds(TakeNumber(in));
  numbers.window = std::chrono::nanoseconds(TakeNumber(in));
  numbers.buckets = TakeNumber(in);
  if (!in.sound() || kind == nullptr) return std::nullopt;
  Result<Quota> quota = kind->make(numbers);
  if (!quota.ok()) return std::nullopt;
  return *quota;
}

bool ReadShare(Reader& in, Group& group) {
  std::string key(in.Text(kMaxText));
  std::string policy(in.Text(kMaxText));
  std::optional<Quota> quota = ReadQuota(in);
  if (!quota || key.empty()) return false;
  Share share{.key = std::move(key), .quota = *quota, .policy = std::move(policy)};
  share.factor = TakeNumber(in);
  share.limit = TakeNumber(in);
  share.shadow = in.Byte() != 0;
  if (!in.sound() || share.factor > kMaxLimit) return false;
  group.shares.push_back(std::move(share));
  return true;
}

bool ReadBody(Reader& in, Reservation& reservation) {
  const std::uint8_t version = in.Byte();
  if (version != kVersion && version != kWithoutMarks) return false;
  const std::string_view nonce = in.Bytes(reservation.nonce.size());
  if (!in.sound()) return false;
  std::copy(nonce.begin(), nonce.end(), reservation.nonce.begin());
  reservation.cost = TakeNumber(in);
  reservation.lasts = std::chrono::milliseconds(TakeNumber(in));
  if (reservation.cost > kMaxLimit || reservation.lasts < kShortest ||
      reservation.lasts > kLongest) {
    return false;
  }
  std::size_t shares = 0;
  reservation.groups.resize(in.Number(kMaxShares));
  for (Group& group : reservation.groups) {
    const std::size_t count = in.Number(kMaxShares);
    shares += count;
    if (count == 0 || shares > kMaxShares) return false;
    for (std::size_t i = 0; i < count; ++i) {
      if (!ReadShare(in, group)) return false;
    }
  }
  return in.sound();
}

}  // namespace

Reservation Begin(std::chrono::milliseconds lasts, std::int64_t cost) {
  Reservation reservation;
  reservation.lasts = std::clamp(lasts, kShortest, kLongest);
  reservation.cost = cost;
  // Without randomness no name is safe.
  if (RAND_bytes(reservation.nonce.data(), static_cast<int>(reservation.nonce.size())) != 1) {
    std::abort();
  }
  return reservation;
}

std::string RecordKey(const Reservation& reservation, std::size_t group) {
  std::string text = Body(reservation);
  PutNumber(text, static_cast<std::int64_t>(group));
  const Digest digest = Sha256(text);
  // In a cluster it must be in the slot of its bucket, so it begins like that
  // (store/redis/names.h). No bucket ends this way: a '%' in a key is followed by two digits.
  const std::string& bucket = reservation.groups[group].shares.front().key;
  const bool parted = bucket.starts_with('{') || bucket.find_first_of("/|") != std::string::npos;
  std::string key = parted ? bucket : std::string();
  key += kRecordMark;
  for (std::size_t i = 0; i < kDigestBytes; ++i) AppendHex(key, digest[i]);
  return key;
}

Quota RecordQuota(const Reservation& reservation) {
  return *Quota::Concurrency(1, reservation.lasts);
}

Status CheckSize(const Reservation& reservation) {
  std::size_t shares = 0;
  for (const Group& group : reservation.groups) shares += group.shares.size();
  const std::size_t bytes = Body(reservation).size() + 8 * (reservation.groups.size() + shares);
  if (shares <= kMaxShares && (bytes + 2) / 3 * 4 <= kMaxText) return {};
  return Error{Code::kInvalidArgument,
               "cannot be reserved: the keys of all buckets together are too long"};
}

void Note(Group& group, std::chrono::milliseconds lasts, std::span<const Decision> decisions) {
  group.lease = decisions.empty() ? 0 : decisions.front().lease;
  if (group.lease == 0) return;
  // The record was fresh: its lease shows when it, and all others with it, was charged.
  const Nanos now = group.lease - std::chrono::nanoseconds(lasts).count();
  for (std::size_t i = 0; i < group.shares.size(); ++i) {
    Share& share = group.shares[i];
    share.stamp = algorithm::StampOf(share.quota, now, decisions[i + 1]);
  }
}

std::int64_t ChangeOf(const Reservation& reservation, const Share& share, std::int64_t cost) {
  const Int128 change = (Int128{cost} - reservation.cost) * share.factor;
  constexpr Int128 kMost = kMaxLimit;
  return static_cast<std::int64_t>(std::clamp(change, -kMost, kMost));
}

std::string Write(const Reservation& reservation) {
  std::string bytes = Body(reservation);
  for (const Group& group : reservation.groups) {
    PutFixed(bytes, group.lease);
    for (const Share& share : group.shares) PutFixed(bytes, share.stamp);
  }
  return Base64UrlEncoded(bytes);
}

Result<Reservation> Read(std::string_view text) {
  const Error wrong{Code::kInvalidArgument, "must be the string that the reservation returned"};
  if (text.empty() || text.size() > kMaxText) return wrong;
  const std::optional<std::string> bytes = Base64UrlDecoded(text);
  if (!bytes) return wrong;
  Reader in(*bytes);
  Reservation reservation;
  if (!ReadBody(in, reservation)) return wrong;
  for (Group& group : reservation.groups) {
    group.lease = in.Fixed();
    for (Share& share : group.shares) share.stamp = in.Fixed();
  }
  if (!in.done()) return wrong;
  return reservation;
}

}  // namespace weir::store::reserve
