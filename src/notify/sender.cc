#include "notify/sender.h"

#include <algorithm>
#include <map>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>

#include "telemetry/log.h"

namespace weir::notify {
namespace {

using telemetry::Level;
using telemetry::Log;

// Enough of a bad message to see what it is; all of it is in the dead letters.
constexpr std::size_t kShownBytes = 512;
constexpr std::chrono::milliseconds kInsistPause{500};

enum class Fate : std::uint8_t { kWaiting, kDelivered, kDuplicate, kMalformed, kUndeliverable };

void LogDead(std::string_view what, const kafka::Incoming& message, const std::string& reason) {
  Log(Level::kError, what,
      {{"reason", std::string_view(reason)},
       {"partition", std::int64_t{message.partition}},
       {"offset", message.offset},
       {"key", std::string_view(message.key).substr(0, kShownBytes)},
       {"payload", std::string_view(message.payload).substr(0, kShownBytes)},
       {"bytes", std::uint64_t{message.payload.size()}}});
}

}  // namespace

struct Sender::Item {
  kafka::Incoming message;
  Event event = {};
  Fate fate = Fate::kWaiting;
  std::string reason = {};

  bool dead() const { return fate == Fate::kMalformed || fate == Fate::kUndeliverable; }
};

Sender::Sender(Provider& provider, DeliveredIds& delivered, KeepDeadLetters keep,
               SenderOptions options, std::stop_token stop)
    : provider_(provider),
      delivered_(delivered),
      keep_(std::move(keep)),
      options_(options),
      stop_(std::move(stop)) {}

std::vector<kafka::Position> Sender::Handle(std::vector<kafka::Incoming> messages) {
  std::vector<Item> items;
  items.reserve(messages.size());
  for (kafka::Incoming& message : messages) items.push_back({std::move(message)});
  Decode(items);
  if (!DropKnown(items)) return {};
  Deliver(items);
  if (!KeepDead(items) || !Remember(items)) return {};
  Count(items);

  std::map<std::int32_t, kafka::Position> handled;
  std::map<std::int32_t, bool> broken;
  for (const Item& item : items) {
    const std::int32_t partition = item.message.partition;
    if (item.fate == Fate::kWaiting) broken[partition] = true;
    if (!broken[partition]) handled[partition] = {partition, item.message.offset + 1};
  }
  std::vector<kafka::Position> positions;
  positions.reserve(handled.size());
  for (const auto& [partition, position] : handled) positions.push_back(position);
  return positions;
}

void Sender::Decode(std::vector<Item>& items) {
  for (Item& item : items) {
    Result<Event> event = DecodeEvent(item.message.payload);
    if (event) {
      item.event = *std::move(event);
      continue;
    }
    item.fate = Fate::kMalformed;
    item.reason = event.error().message;
    LogDead("malformed message skipped", item.message, item.reason);
  }
}

// The first of those that carry the same id is delivered; the others share its fate afterwards.
bool Sender::DropKnown(std::vector<Item>& items) {
  std::vector<std::string> ids;
  for (const Item& item : items) {
    if (item.fate == Fate::kWaiting) ids.push_back(item.event.id);
  }
  std::unordered_set<std::string> known;
  const bool read = Insist("the delivered ids cannot be read", [&]() -> Status {
    auto found = delivered_.Known(ids);
    if (!found) return found.error();
    known = *std::move(found);
    return {};
  });
  if (!read) return false;
  for (Item& item : items) {
    if (item.fate != Fate::kWaiting || !known.contains(item.event.id)) continue;
    item.fate = Fate::kDuplicate;
    Log(Level::kInfo, "duplicate event skipped", {{"eventId", std::string_view(item.event.id)}});
  }
  return true;
}

void Sender::DeliverOne(Item& item) const {
  if (stop_.stop_requested()) return;
  const Status delivered = DeliverWithRetries(provider_, item.event, options_.retry, stop_);
  if (delivered) {
    item.fate = Fate::kDelivered;
    return;
  }
  if (stop_.stop_requested() && MayHelpToRetry(delivered.error())) return;
  item.fate = Fate::kUndeliverable;
  item.reason = delivered.error().message;
}

void Sender::Deliver(std::vector<Item>& items) {
  std::unordered_map<std::string_view, Item*> first;
  std::vector<std::pair<Item*, Item*>> repeated;
  std::vector<std::vector<Item*>> lanes(std::max<std::size_t>(options_.workers, 1));
  for (Item& item : items) {
    if (item.fate != Fate::kWaiting) continue;
    const auto [found, fresh] = first.emplace(item.event.id, &item);
    if (!fresh) {
      repeated.emplace_back(&item, found->second);
      continue;
    }
    lanes[std::hash<std::string>{}(item.event.user_id) % lanes.size()].push_back(&item);
  }
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 1; i < lanes.size(); ++i) {
      if (lanes[i].empty()) continue;
      threads.emplace_back([this, &lane = lanes[i]] {
        for (Item* item : lane) DeliverOne(*item);
      });
    }
    for (Item* item : lanes[0]) DeliverOne(*item);
  }
  for (const auto& [item, original] : repeated) {
    if (original->fate != Fate::kWaiting) item->fate = Fate::kDuplicate;
  }
  for (const Item& item : items) {
    if (item.fate == Fate::kUndeliverable) {
      LogDead("message cannot be delivered", item.message, item.reason);
    }
  }
}

bool Sender::KeepDead(const std::vector<Item>& items) {
  std::vector<DeadLetter> letters;
  for (const Item& item : items) {
    if (item.dead()) letters.push_back({item.message, item.reason});
  }
  if (letters.empty()) return true;
  return Insist("dead letters cannot be kept", [&] { return keep_(letters); });
}

bool Sender::Remember(const std::vector<Item>& items) {
  std::vector<std::string> ids;
  for (const Item& item : items) {
    // Not the undeliverable: who puts a dead letter on the topic again wants it to be tried again.
    if (item.fate == Fate::kDelivered) ids.push_back(item.event.id);
  }
  return Insist("the delivered ids cannot be written", [&] { return delivered_.Add(ids); });
}

// Going on without would lose a message or deliver it twice, so there is no other way than waiting.
bool Sender::Insist(std::string_view what, const std::function<Status()>& attempt) {
  for (;;) {
    const Status done = attempt();
    if (done) return true;
    Log(Level::kError, what, {{"reason", std::string_view(done.error().message)}});
    if (!Sleep(kInsistPause, stop_)) return false;
  }
}

void Sender::Count(const std::vector<Item>& items) {
  for (const Item& item : items) {
    counts_.delivered += item.fate == Fate::kDelivered ? 1 : 0;
    counts_.duplicates += item.fate == Fate::kDuplicate ? 1 : 0;
    counts_.malformed += item.fate == Fate::kMalformed ? 1 : 0;
    counts_.undeliverable += item.fate == Fate::kUndeliverable ? 1 : 0;
  }
}

}  // namespace weir::notify
