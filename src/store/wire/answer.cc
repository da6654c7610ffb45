#include "store/wire/answer.h"

#include <chrono>
#include <cstdint>

#include "store/wire/bytes.h"
#include "store/wire/question.h"

namespace weir::store::wire {
namespace {

// The first byte of an application's answer.
constexpr std::uint8_t kUndecided = 0;
constexpr std::uint8_t kDecided = 1;
constexpr std::uint8_t kApplied = 2;    // combined with kDecided
constexpr std::uint8_t kEstimated = 4;  // combined with kDecided
constexpr std::uint8_t kAll = kDecided | kApplied | kEstimated;

constexpr std::size_t kMaxMessage = 512;
constexpr auto kLastCode = static_cast<std::uint8_t>(Code::kInternal);
constexpr auto kLastVerdict = static_cast<std::uint8_t>(Verdict::kInvalid);

void PutDecision(std::string& out, const Decision& decision) {
  PutByte(out, static_cast<std::uint8_t>(decision.verdict));
  PutSigned(out, decision.limit);
  PutSigned(out, decision.remaining);
  PutSigned(out, decision.retry_after.count());
  PutSigned(out, decision.reset_after.count());
  PutSigned(out, decision.lease);
}

void ReadDecision(Reader& in, Decision& decision) {
  const std::uint8_t verdict = in.Byte();
  if (verdict > kLastVerdict) return in.Fail();
  decision.verdict = static_cast<Verdict>(verdict);
  decision.limit = in.Signed();
  decision.remaining = in.Signed();
  decision.retry_after = std::chrono::nanoseconds(in.Signed());
  decision.reset_after = std::chrono::nanoseconds(in.Signed());
  decision.lease = in.Signed();
}

bool NamesCharge(const Application& application) noexcept {
  return application.op == Op::kCharge && application.returnable;
}

void ReadError(Reader& in, Application& application) {
  const std::uint8_t code = in.Byte();
  if (code > kLastCode) return in.Fail();
  application.applied = false;
  application.status = Error{static_cast<Code>(code), std::string(in.Text(kMaxMessage))};
}

void ReadOne(Reader& in, Application& application) {
  const std::uint8_t flags = in.Byte();
  if (!in.sound() || flags > kAll) return in.Fail();
  if (flags == kUndecided) return ReadError(in, application);
  if ((flags & kDecided) == 0) return in.Fail();
  application.status = {};
  application.applied = (flags & kApplied) != 0;
  application.estimated = (flags & kEstimated) != 0;
  if (application.op == Op::kLease) {
    application.granted = in.Signed();
    application.at = in.Signed();
    const bool fits = application.granted >= 0 && application.granted <= kMaxLimit;
    if (!fits) return in.Fail();
  }
  if (NamesCharge(application)) application.at = in.Signed();
  for (Decision& decision : application.decisions) ReadDecision(in, decision);
}

}  // namespace

std::string WriteAnswer(std::span<const Application> applications) {
  std::string out;
  PutByte(out, kVersion);
  for (const Application& application : applications) {
    if (!application.status.ok()) {
      const Error& error = application.status.error();
      PutByte(out, kUndecided);
      PutByte(out, static_cast<std::uint8_t>(error.code));
      PutText(out, std::string_view(error.message).substr(0, kMaxMessage));
      continue;
    }
    PutByte(out, static_cast<std::uint8_t>(kDecided | (application.applied ? kApplied : 0) |
                                           (application.estimated ? kEstimated : 0)));
    if (application.op == Op::kLease) {
      PutSigned(out, application.granted);
      PutSigned(out, application.at);
    }
    if (NamesCharge(application)) PutSigned(out, application.at);
    for (const Decision& decision : application.decisions) PutDecision(out, decision);
  }
  return out;
}

Status ReadAnswer(std::string_view bytes, std::span<Application* const> applications) {
  Reader in(bytes);
  if (in.Byte() != kVersion) in.Fail();
  for (Application* const application : applications) {
    if (!in.sound()) break;
    ReadOne(in, *application);
  }
  if (in.done()) return {};
  return Error{Code::kInternal, "unexpected answer to WEIR.APPLY"};
}

}  // namespace weir::store::wire
