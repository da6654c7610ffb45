#include "store/wire/question.h"

#include <chrono>

#include "algorithm/algorithms.h"
#include "algorithm/lease.h"
#include "store/wire/bytes.h"

namespace weir::store::wire {
namespace {

constexpr std::uint8_t kHasRegion = 0x80;   // combined with the operation
constexpr std::uint8_t kReturnable = 0x40;  // combined with the operation kCharge
constexpr std::uint8_t kOpBits = 0x3F;
constexpr std::uint8_t kLastOp = static_cast<std::uint8_t>(Op::kSettle);

bool OfOneCharge(Op op) noexcept {
  return op == Op::kRelease || op == Op::kLease || op == Op::kReturn;
}

bool CanBeLent(Algorithm algorithm) noexcept {
  return algorithm != Algorithm::kConcurrency && algorithm != Algorithm::kAnchoredWindow;
}

bool MayHaveRegion(Op op) noexcept {
  return op == Op::kCharge || op == Op::kLease || op == Op::kReturn;
}

void PutQuota(std::string& out, const Quota& quota) {
  const algorithm::Numbers numbers = algorithm::NumbersOf(quota);
  const algorithm::Descriptor& kind = algorithm::Of(quota);
  PutByte(out, static_cast<std::uint8_t>(quota.algorithm()));
  PutNumber(out, static_cast<std::uint64_t>(numbers.limit));
  if (kind.refills()) {
    PutNumber(out, static_cast<std::uint64_t>(numbers.refill));
    PutNumber(out, static_cast<std::uint64_t>(numbers.period.count()));
    return;
  }
  PutNumber(out, static_cast<std::uint64_t>(numbers.window.count()));
  if (kind.has_buckets) PutNumber(out, static_cast<std::uint64_t>(numbers.buckets));
}

/// No quota has larger numbers; the factories check the rest.
constexpr auto kMostNumber = static_cast<std::uint64_t>(kMaxWindow.count());

bool ReadQuota(Reader& in, std::vector<Quota>& quotas) {
  const algorithm::Descriptor* const kind = algorithm::FindTag(in.Byte());
  if (!in.sound() || kind == nullptr) return false;
  const auto number = [&in] { return static_cast<std::int64_t>(in.Number(kMostNumber)); };
  algorithm::Numbers numbers;
  numbers.limit = number();
  if (kind->refills()) {
    numbers.refill = number();
    numbers.period = std::chrono::nanoseconds(number());
  } else {
    numbers.window = std::chrono::nanoseconds(number());
    if (kind->has_buckets) numbers.buckets = number();
  }
  if (!in.sound()) return false;
  const Result<Quota> quota = kind->make(numbers);
  if (!quota.ok()) return false;
  quotas.push_back(*quota);
  return true;
}

}  // namespace

std::size_t SizeOf(const Application& application) noexcept {
  constexpr std::size_t kMostOfCharge = 7 * algorithm::kMaxVarint + 1;
  std::size_t size = 4 * algorithm::kMaxVarint;
  for (const Charge& charge : application.charges) size += kMostOfCharge + charge.key.size();
  return size;
}

std::string WriteQuestion(std::span<Application* const> applications) {
  std::size_t charges = 0;
  for (const Application* const application : applications) charges += application->charges.size();
  std::string out;
  PutByte(out, kVersion);
  PutNumber(out, applications.size());
  PutNumber(out, charges);
  for (const Application* const application : applications) {
    const RegionTerms& region = application->region;
    const auto op = static_cast<std::uint8_t>(application->op);
    const bool returnable = application->returnable && application->op == Op::kCharge;
    PutByte(out, op | (region.term > 0 ? kHasRegion : 0) | (returnable ? kReturnable : 0));
    PutSigned(out, application->lease);
    if (region.term > 0) {
      PutNumber(out, static_cast<std::uint64_t>(region.term));
      PutNumber(out, static_cast<std::uint64_t>(region.lent));
    }
    PutNumber(out, application->charges.size());
    for (std::size_t i = 0; i < application->charges.size(); ++i) {
      const Charge& charge = application->charges[i];
      PutText(out, charge.key);
      PutQuota(out, *charge.quota);
      PutSigned(out, charge.cost);
      if (application->op == Op::kSettle) PutSigned(out, application->stamps[i]);
    }
  }
  return out;
}

/// Reads into a question whose vectors have room for everything, so that nothing moves.
class Question::Parse {
 public:
  explicit Parse(Question& question) : question_(question), in_(question.bytes_) {}

  bool All() {
    if (in_.Byte() != kVersion) return false;
    const std::size_t applications = in_.Number(kMaxApplications);
    const std::size_t charges = in_.Number(kMaxCharges);
    // Each takes at least a byte: a short text cannot request much memory.
    if (!in_.sound() || applications + charges > question_.bytes_.size()) return false;
    question_.applications_.reserve(applications);
    question_.charges_.reserve(charges);
    question_.quotas_.reserve(charges);
    question_.stamps_.resize(charges);
    question_.decisions_.resize(charges);
    for (std::size_t i = 0; i < applications; ++i) {
      if (!One()) return false;
    }
    return in_.done() && question_.charges_.size() == charges;
  }

 private:
  bool One() {
    Application& application = question_.applications_.emplace_back();
    const std::uint8_t head = in_.Byte();
    if ((head & kOpBits) > kLastOp) return false;
    application.op = static_cast<Op>(head & kOpBits);
    application.returnable = (head & kReturnable) != 0;
    if (application.returnable && application.op != Op::kCharge) return false;
    application.lease = in_.Signed();
    const bool regional = (head & kHasRegion) != 0;
    if (regional && !Region(application)) return false;
    const std::size_t first = question_.charges_.size();
    const std::size_t count = in_.Number(question_.charges_.capacity() - first);
    if (!in_.sound() || count == 0) return false;
    if (count != 1 && (regional || OfOneCharge(application.op))) return false;
    for (std::size_t i = 0; i < count; ++i) {
      if (!OneCharge(application.op == Op::kSettle)) return false;
    }
    if (application.op == Op::kLease && question_.charges_.back().cost < 0) return false;
    if (regional && !CanBeLent(question_.quotas_[first].algorithm())) return false;
    application.charges = std::span(question_.charges_).subspan(first, count);
    application.decisions = std::span(question_.decisions_).subspan(first, count);
    if (application.op == Op::kSettle) {
      application.stamps = std::span(question_.stamps_).subspan(first, count);
    }
    return true;
  }

  bool Region(Application& application) {
    constexpr auto kLongest = static_cast<std::uint64_t>(
        std::chrono::nanoseconds(algorithm::kLongestRegionLease).count());
    RegionTerms& region = application.region;
    region.term = static_cast<Nanos>(in_.Number(kLongest));
    region.lent = static_cast<Nanos>(in_.Number(kLongest));
    return in_.sound() && MayHaveRegion(application.op) && region.lent > 0 &&
           region.lent < region.term;
  }

  bool OneCharge(bool settled) {
    const std::string_view key = in_.Text(kMaxKeyBytes);
    if (!ReadQuota(in_, question_.quotas_)) return false;
    const std::int64_t cost = in_.Signed();
    if (settled) question_.stamps_[question_.charges_.size()] = in_.Signed();
    if (!in_.sound()) return false;
    question_.charges_.push_back({key, cost, &question_.quotas_.back()});
    return true;
  }

  Question& question_;
  Reader in_;
};

Result<std::unique_ptr<Question>> Question::Read(std::string_view bytes) {
  if (bytes.size() > kMaxBytes) {
    return Error{Code::kInvalidArgument, "more than " + std::to_string(kMaxBytes) + " bytes"};
  }
  if (!bytes.empty() && static_cast<std::uint8_t>(bytes.front()) != kVersion) {
    return Error{Code::kInvalidArgument,
                 "unsupported version of WEIR.APPLY; this service has " + std::to_string(kVersion)};
  }
  std::unique_ptr<Question> question(new Question(bytes));
  if (!Parse(*question).All()) {
    return Error{Code::kInvalidArgument, "malformed WEIR.APPLY request"};
  }
  return question;
}

}  // namespace weir::store::wire
