#include "protocol/resp/service.h"

#include <utility>

namespace weir::resp {

std::unique_ptr<Batch> Worker::TakeBatch() {
  if (spare_.empty()) {
    return std::make_unique<Batch>();
  }
  std::unique_ptr<Batch> batch = std::move(spare_.back());
  spare_.pop_back();
  return batch;
}

void Worker::GiveBack(std::unique_ptr<Batch> batch) {
  batch->Clear();
  if (spare_.size() < kSpareBatches) {
    spare_.push_back(std::move(batch));
  }
}

}  // namespace weir::resp
