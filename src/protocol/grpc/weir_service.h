#pragma once

#include "protocol/grpc/decider.h"
#include "protocol/grpc/method.h"

namespace weir::grpc {

/// What one CheckBatch message may hold at most.
inline constexpr int kMaxBatch = 10'000;

/// Adds weir.v1.Limiter: Check, CheckBatch, CheckStream, Peek, Refund, Release.
void AddWeirService(Services& services, Decider& decider);

}  // namespace weir::grpc
