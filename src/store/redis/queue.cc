#include "store/redis/queue.h"

#include <algorithm>
#include <utility>

#include "store/redis/single.h"

namespace weir::store::redis {

// Waiting applications can go call by call, the first as a call of its own. Beside a combined call
// the same depth applies: under load, later ones are cheaper in the next combined call.
bool Queue::HasSingle(std::size_t depth) const {
  const std::size_t room = combined_ == 0 ? kDepth : depth;
  const bool fits = in_flight_ < room && waiting_.size() <= room - in_flight_;
  return (fits || apart_ > 0) && SingleShape(*waiting_.front().application) &&
         (waiting_.size() == 1 || waiting_[1].call != waiting_[0].call);
}

std::shared_ptr<Load> Queue::Next(std::size_t depth) {
  if (waiting_.empty() || held()) return nullptr;
  // An Apply that does not fit into one call goes call by call: a call that is sent again, to
  // another node or with the script's text, would be overtaken by the next.
  if (last_ != nullptr && last_->pending.back().call == waiting_.front().call) return nullptr;
  const bool single = HasSingle(depth);
  if (!single && in_flight_ >= depth) return nullptr;
  auto load = std::make_shared<Load>();
  std::size_t charges = 0;
  const std::size_t most = single ? 1 : kMaxChargesOfCall;
  while (!waiting_.empty() && load->pending.size() < most) {
    charges += waiting_.front().application->charges.size();
    if (charges > kMaxChargesOfCall && !load->pending.empty()) break;
    load->applications.push_back(waiting_.front().application);
    charges_ -= waiting_.front().application->charges.size();
    load->pending.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  apart_ -= std::min(apart_, load->pending.size());
  if (waiting_.empty()) held_ = false;
  if (load->applications.size() == 1) load->single = SingleShape(*load->applications[0]);
  load->combined = !load->single.has_value();
  ++in_flight_;
  if (load->combined) ++combined_;
  last_ = load.get();
  return load;
}

void Queue::Release() noexcept {
  if (!std::exchange(held_, false)) return;
  apart_ = in_flight_ + waiting_.size() <= kApart ? waiting_.size() : 0;
}

void Queue::Answered(const Load& load) {
  --in_flight_;
  if (load.combined) --combined_;
  if (last_ == &load) last_ = nullptr;
}

Queue& Queues::Of(Lane lane, std::uint32_t server) {
  const auto [found, is_new] = entries_.try_emplace(lane);
  Entry& entry = found->second;
  if (is_new || entry.server != server) {
    if (!is_new) Leave(entry.server);
    entry.server = server;
    ++lanes_of_[server];
  }
  return entry.queue;
}

Queue* Queues::Find(Lane lane) {
  const auto found = entries_.find(lane);
  return found == entries_.end() ? nullptr : &found->second.queue;
}

std::size_t Queues::DepthOf(Lane lane) const {
  const auto found = entries_.find(lane);
  if (found == entries_.end()) return Queue::kDepth;
  return std::max<std::size_t>(Queue::kDepth / lanes_of_.at(found->second.server), 1);
}

void Queues::EraseIfIdle(Lane lane) {
  const auto found = entries_.find(lane);
  if (found == entries_.end() || !found->second.queue.idle()) return;
  Leave(found->second.server);
  entries_.erase(found);
}

std::vector<Queues::Lane> Queues::Lanes() const {
  std::vector<Lane> lanes;
  lanes.reserve(entries_.size());
  for (const auto& [lane, entry] : entries_) lanes.push_back(lane);
  return lanes;
}

std::vector<Queue> Queues::TakeAll() {
  std::vector<Queue> all;
  for (auto& [lane, entry] : std::exchange(entries_, {})) all.push_back(std::move(entry.queue));
  lanes_of_.clear();
  return all;
}

// Servers are few, so one without lanes keeps its entry.
void Queues::Leave(std::uint32_t server) { --lanes_of_[server]; }

}  // namespace weir::store::redis
