#include "protocol/resp/service.h"

#include <utility>

namespace weir::resp {
namespace {

// The time depends on the length of what was offered alone.
bool SameSecret(std::string_view offered, std::string_view secret) noexcept {
  unsigned difference = offered.size() == secret.size() ? 0 : 1;
  for (std::size_t i = 0; i < offered.size(); ++i) {
    const char expected = secret.empty() ? '\0' : secret[i % secret.size()];
    difference |= static_cast<unsigned char>(offered[i] ^ expected);
  }
  return difference == 0;
}

}  // namespace

bool Service::Authenticate(std::string_view password) const noexcept {
  bool match = false;
  for (const std::string& secret : passwords) {
    match |= SameSecret(password, secret);
  }
  return match;
}

std::unique_ptr<Batch> Shop::TakeBatch() {
  if (spare_.empty()) {
    return std::make_unique<Batch>();
  }
  std::unique_ptr<Batch> batch = std::move(spare_.back());
  spare_.pop_back();
  return batch;
}

void Shop::GiveBack(std::unique_ptr<Batch> batch) {
  batch->Clear();
  if (spare_.size() < kSpareBatches) {
    spare_.push_back(std::move(batch));
  }
}

}  // namespace weir::resp
