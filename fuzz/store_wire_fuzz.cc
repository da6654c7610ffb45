// What one Weir sends another, and the answers: whatever the bytes are, they are refused or stand
// for bounded applications, and what is written for those is read as the same.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/wire/answer.h"
#include "store/wire/question.h"

namespace {

using namespace weir::store;  // NOLINT(google-build-using-namespace): a fuzz target

void TryAnswer(std::string_view bytes) {
  static const weir::Quota quota = *weir::Quota::TokenBucket(10, 1);
  const Charge charge{"key", 1, &quota};
  std::vector<weir::Decision> decisions(3);
  std::vector<Application> applications(3);
  std::vector<Application*> pointers;
  for (std::size_t i = 0; i < applications.size(); ++i) {
    applications[i].op = i == 1 ? Op::kLease : Op::kCharge;
    applications[i].charges = {&charge, 1};
    applications[i].decisions = {&decisions[i], 1};
    pointers.push_back(&applications[i]);
  }
  if (!wire::ReadAnswer(bytes, pointers).ok()) return;
  if (wire::WriteAnswer(applications) != bytes) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  TryAnswer(bytes);
  const auto question = wire::Question::Read(bytes);
  if (!question.ok()) return 0;
  std::vector<Application*> pointers;
  std::size_t charges = 0;
  for (Application& application : (*question)->applications()) {
    charges += application.charges.size();
    if (application.decisions.size() != application.charges.size()) __builtin_trap();
    pointers.push_back(&application);
  }
  if (pointers.size() > wire::kMaxApplications || charges > wire::kMaxCharges) __builtin_trap();
  // A quota may be written in lower terms than it was read in; after that nothing changes.
  const std::string written = wire::WriteQuestion(pointers);
  const auto again = wire::Question::Read(written);
  if (!again.ok()) __builtin_trap();
  std::vector<Application*> same;
  for (Application& application : (*again)->applications()) same.push_back(&application);
  if (wire::WriteQuestion(same) != written) __builtin_trap();
  return 0;
}
