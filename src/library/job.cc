#include "library/job.h"

#include <algorithm>

namespace weir::library {

void AppendStoreKey(std::string& out, std::string_view prefix, std::string_view key) {
  const std::size_t end = key.starts_with('{') ? key.find('}') : std::string_view::npos;
  const std::size_t tag = end == std::string_view::npos ? 0 : end + 1;
  out.append(key.substr(0, tag)).append(prefix).append(key.substr(tag));
}

void Job::Add(std::string_view prefix, std::string_view key, const Quota& quota,
              std::int64_t cost) {
  AppendStoreKey(keys, prefix, key);
  ends.push_back(keys.size());
  quotas.push_back(quota);
  // The quota refuses a cost above every limit as kNever; it only must not overflow.
  charges.push_back({{}, std::clamp<std::int64_t>(cost, 0, kMaxLimit + 1), nullptr});
}

Status Job::Reserve(std::string_view prefix, std::string_view key, const Quota& quota,
                    std::int64_t cost, std::chrono::milliseconds lasts) {
  using store::reserve::Share;
  if (cost < 1) return Error{Code::kInvalidArgument, "estimate: must be at least 1"};
  if (lasts < store::reserve::kShortest || lasts > store::reserve::kLongest) {
    return Error{Code::kInvalidArgument, "lasts: must be 1 ms to 24 h"};
  }
  cost = std::min(cost, kMaxLimit + 1);
  reservation = store::reserve::Begin(lasts, cost);
  Share share{.quota = quota, .limit = quota.limit()};
  AppendStoreKey(share.key, prefix, key);
  reservation->groups.emplace_back().shares.push_back(share);
  AddRecord();
  AddNamed(share.key, quota, cost);
  return {};
}

Status Job::Settle(std::string_view text, std::int64_t cost) {
  if (cost < 0) return Error{Code::kInvalidArgument, "cost: must not be negative"};
  Result<store::reserve::Reservation> read = store::reserve::Read(text);
  if (!read.ok()) return Error{Code::kInvalidArgument, "reservation: " + read.error().message};
  if (read->groups.size() != 1) {
    return Error{Code::kInvalidArgument,
                 "reservation: it was made by a service and must be settled there"};
  }
  reservation = *std::move(read);
  const store::reserve::Group& group = reservation->groups.front();
  application.op = store::Op::kSettle;
  application.lease = group.lease;
  AddRecord();
  for (const store::reserve::Share& share : group.shares) {
    AddNamed(share.key, share.quota, ChangeOf(*reservation, share, cost), share.stamp);
  }
  return {};
}

void Job::AddNamed(std::string_view name, const Quota& quota, std::int64_t cost, Nanos stamp) {
  keys.append(name);
  ends.push_back(keys.size());
  quotas.push_back(quota);
  charges.push_back({{}, cost, nullptr});
  stamps.push_back(stamp);
}

void Job::AddRecord() {
  AddNamed(store::reserve::RecordKey(*reservation, 0), store::reserve::RecordQuota(*reservation),
           1);
}

void Job::Seal() {
  std::size_t begin = 0;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    charges[i].key = std::string_view(keys).substr(begin, ends[i] - begin);
    charges[i].quota = &quotas[i];
    begin = ends[i];
  }
  decisions.resize(charges.size());
  application.charges = charges;
  application.stamps = stamps;
  application.decisions = decisions;
}

}  // namespace weir::library
