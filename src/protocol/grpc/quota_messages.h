#pragma once

// Converts between the messages of the rate limit quota service and the types of quota_streams.cc.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "envoy/service/rate_limit_quota/v3/rlqs.pb.h"
#include "limiter/assignments.h"
#include "limiter/limiter.h"
#include "protocol/grpc/quota_bucket.h"

namespace weir::grpc {

using QuotaNames = std::vector<std::pair<std::string, std::string>>;
using QuotaAction = envoy::service::rate_limit_quota::v3::RateLimitQuotaResponse::BucketAction;

/// A bucket's id, in the order of its names.
QuotaNames NamesOf(const envoy::service::rate_limit_quota::v3::BucketId& id);
/// A text that is unique to this id.
std::string TextOf(const QuotaNames& names);

/// What a decided check says about its bucket.
QuotaFacts FactsOf(const limiter::Check& check);

/// The store's keys that it was charged to.
std::vector<std::string> KeysOf(const limiter::Check& check);

/// Whether an action can name it: Envoy could not read an answer with a string that is not UTF-8.
bool IsSayable(const QuotaNames& names);
void SetId(QuotaAction& action, const QuotaNames& names);
/// A token bucket that is filled every second, or DENY_ALL for 0: all that Envoy supports well.
void SetStrategy(QuotaAction& action, std::int64_t rate);

}  // namespace weir::grpc
