#include "notify/provider_health.h"

namespace weir::notify {
namespace {

constexpr int kDownAfter = 10;  // failures in a row
constexpr std::chrono::seconds kProbePause{1};

}  // namespace

ProviderHealth::Channel& ProviderHealth::Of(const std::string& channel) {
  const auto known = channels_.find(channel);
  if (known != channels_.end()) return known->second;
  return channels_[channels_.size() < kMaxChannels ? channel : std::string()];
}

void ProviderHealth::Delivered(const std::string& channel, Time now) {
  const std::lock_guard lock(mutex_);
  Channel& one = Of(channel);
  one.delivered = now;
  one.failures = 0;
}

void ProviderHealth::Failed(const std::string& channel) {
  const std::lock_guard lock(mutex_);
  Channel& one = Of(channel);
  if (one.failures < kDownAfter) ++one.failures;
}

bool ProviderHealth::DeliveredOthers(const std::string& channel, const std::string& message,
                                     Time began) const {
  const std::lock_guard lock(mutex_);
  const auto before = put_off_.find(message);
  const Time since = before == put_off_.end() ? began : before->second;
  auto known = channels_.find(channel);
  if (known == channels_.end()) known = channels_.find(std::string());
  return known != channels_.end() && known->second.delivered >= since;
}

void ProviderHealth::PutOff(const std::string& message, Time now) {
  const std::lock_guard lock(mutex_);
  if (put_off_.size() < kMaxMessages || put_off_.contains(message)) put_off_[message] = now;
}

void ProviderHealth::Forget(const std::string& message) {
  const std::lock_guard lock(mutex_);
  put_off_.erase(message);
}

bool ProviderHealth::MayTry(const std::string& channel, Time now) {
  const std::lock_guard lock(mutex_);
  Channel& one = Of(channel);
  if (one.failures < kDownAfter) return true;
  if (now - one.probed < kProbePause) return false;
  one.probed = now;
  return true;
}

}  // namespace weir::notify
