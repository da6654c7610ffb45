#include "notify/sender.h"

#include <map>
#include <unordered_map>
#include <utility>

#include "telemetry/log.h"

namespace weir::notify {
namespace {

using telemetry::Level;
using telemetry::Log;

constexpr std::chrono::milliseconds kInsistPause{500};
// Before the group assumes that a paused sender is gone, and gives its messages to another.
constexpr std::chrono::seconds kAskAgainAfter{5};

// Not the payload: a message's text is confidential. All of it is in the dead
// letters.
void LogDead(const kafka::Incoming& message, const Parcel& parcel) {
  const bool malformed = parcel.fate == Fate::kMalformed;
  Log(Level::kError, malformed ? "malformed message skipped" : "message cannot be delivered",
      {{"reason", std::string_view(parcel.reason)},
       {"eventId", std::string_view(malformed ? std::string_view() : parcel.event.id)},
       {"attempts", std::int64_t{parcel.attempts}},
       {"partition", std::int64_t{message.partition}},
       {"offset", message.offset},
       {"key", std::string_view(message.key).substr(0, kMaxUserIdBytes)},
       {"bytes", std::uint64_t{message.payload.size()}}});
}

}  // namespace

struct Sender::Item {
  kafka::Incoming message;
  Parcel parcel = {};

  Fate fate() const { return parcel.fate; }
};

Sender::Sender(SenderParts parts, const SenderOptions& options, std::stop_token stop)
    : parts_(std::move(parts)),
      stop_(stop),
      courier_(parts_.provider, parts_.stats, parts_.clock,
               {.workers = options.workers,
                .retry = options.retry,
                .may_delay = parts_.log != nullptr,
                .is_settled = [this](const Event& event) { return IsSettledSince(event); },
                .on_failure =
                    [log = parts_.log](const Delivery& failure) {
                      if (log != nullptr) log->NoteFailure(failure);
                    },
                .on_wait = parts_.on_wait},
               std::move(stop)) {}

std::vector<kafka::Position> Sender::Handle(std::vector<kafka::Incoming> messages) {
  std::vector<Item> items;
  items.reserve(messages.size());
  for (kafka::Incoming& message : messages) items.push_back({std::move(message)});
  Decode(items);
  if (!DropKnown(items) || !RespectWishes(items)) return {};
  Deliver(items);
  // First what this machine can do alone: a sender that is stopped while the others are down still
  // knows what was delivered.
  if (!Remember(items) || !KeepDead(items) || !Report(items)) return {};
  Count(items);

  std::map<std::int32_t, kafka::Position> handled;
  std::map<std::int32_t, bool> broken;
  for (const Item& item : items) {
    const std::int32_t partition = item.message.partition;
    if (item.fate() == Fate::kWaiting) broken[partition] = true;
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
      item.parcel.event = *std::move(event);
      continue;
    }
    item.parcel.fate = Fate::kMalformed;
    item.parcel.reason = event.error().message;
    // It has no ID of its own; this one shows where it came from.
    item.parcel.event.id = "partition-" + std::to_string(item.message.partition) + "-offset-" +
                           std::to_string(item.message.offset);
  }
}

// False: stopped meanwhile, and nothing has been delivered.
bool Sender::DropKnown(std::vector<Item>& items) {
  std::vector<std::string> ids;
  for (const Item& item : items) {
    if (item.fate() == Fate::kWaiting) ids.push_back(item.parcel.event.id);
  }
  std::unordered_set<std::string> known;
  std::unordered_set<std::string> settled;
  std::unordered_set<std::string> repeated;
  asked_ = std::chrono::steady_clock::now();
  asked_at_ = NowMicros(parts_.clock);
  const bool read = Insist("cannot read the delivered IDs", [&]() -> Status {
    auto found = parts_.delivered.Known(ids);
    if (!found) return found.error();
    known = *std::move(found);
    for (const Item& item : items) {
      const Event& event = item.parcel.event;
      if (item.fate() != Fate::kWaiting || event.earlier_id.empty()) continue;
      auto created = parts_.delivered.CreatedAt(event.earlier_id);
      if (!created) return created.error();
      if (IsSame(*created, event)) repeated.insert(event.id);
    }
    if (parts_.log == nullptr || ids.empty()) return {};
    auto reported = parts_.log->Settled(ids);
    if (!reported) return reported.error();
    settled = *std::move(reported);
    return {};
  });
  if (!read) return false;
  for (Item& item : items) {
    if (item.fate() != Fate::kWaiting) continue;
    const std::string& id = item.parcel.event.id;
    const bool is_settled = settled.contains(id);
    if (!is_settled && !known.contains(id) && !repeated.contains(id)) continue;
    item.parcel.fate = Fate::kDuplicate;
    item.parcel.unrecorded = parts_.log != nullptr ? !is_settled : !known.contains(id);
    Log(Level::kInfo, "duplicate event skipped",
        {{"eventId", std::string_view(item.parcel.event.id)}});
  }
  return true;
}

// A sender that was paused must not deliver what another has delivered since. After a stop that is
// unknown: returns false, and the courier delivers nothing then.
bool Sender::IsSettledSince(const Event& event) {
  if (parts_.log == nullptr) return false;
  const std::chrono::microseconds passed(NowMicros(parts_.clock) - asked_at_);
  const bool fresh = std::chrono::steady_clock::now() - asked_ < kAskAgainAfter &&
                     passed >= -kAskAgainAfter && passed < kAskAgainAfter;
  if (fresh) return false;
  bool settled = false;
  Insist("cannot read what was delivered", [&]() -> Status {
    auto found = parts_.log->Settled({&event.id, 1});
    if (!found) return found.error();
    settled = found->contains(event.id);
    return {};
  });
  return settled;
}

// False: stopped meanwhile.
bool Sender::RespectWishes(std::vector<Item>& items) {
  if (parts_.log == nullptr) return true;
  std::unordered_set<std::string> names;
  for (const Item& item : items) {
    if (item.fate() == Fate::kWaiting) names.insert(item.parcel.event.user_id);
  }
  if (names.empty()) return true;
  const std::vector<std::string> users(names.begin(), names.end());
  std::unordered_map<std::string, Preferences> wishes;
  const bool read = Insist("cannot read the users' preferences", [&]() -> Status {
    auto found = parts_.log->PreferencesOf(users);
    if (!found) return found.error();
    wishes = *std::move(found);
    return {};
  });
  const Micros now = NowMicros(parts_.clock);
  for (Item& item : items) {
    if (item.fate() != Fate::kWaiting) continue;
    const auto wish = wishes.find(item.parcel.event.user_id);
    if (wish != wishes.end()) Respect(wish->second, now, item.parcel);
  }
  return read;
}

void Sender::Deliver(std::vector<Item>& items) {
  std::vector<Parcel*> parcels;
  parcels.reserve(items.size());
  for (Item& item : items) parcels.push_back(&item.parcel);
  courier_.Deliver(parcels);
  for (const Item& item : items) {
    if (item.parcel.dead()) LogDead(item.message, item.parcel);
  }
}

bool Sender::KeepDead(const std::vector<Item>& items) {
  std::vector<DeadLetter> letters;
  for (const Item& item : items) {
    if (item.parcel.dead()) letters.push_back({item.message, item.parcel.reason});
  }
  if (letters.empty()) return true;
  return Insist("cannot store dead letters", [&] { return parts_.keep(letters); });
}

bool Sender::Report(const std::vector<Item>& items) {
  if (parts_.log == nullptr) return true;
  std::vector<Delivery> ends;
  for (const Item& item : items) {
    if (item.fate() == Fate::kWaiting) continue;
    if (item.fate() == Fate::kDuplicate && !item.parcel.unrecorded) continue;
    ends.push_back(item.parcel.ToDelivery());
    ends.back().payload = item.message.payload;
  }
  if (ends.empty()) return true;
  return Insist("cannot report deliveries", [&] { return parts_.log->Report(ends); });
}

bool Sender::Remember(const std::vector<Item>& items) {
  std::vector<std::string> ids;
  std::vector<Micros> created;
  for (const Item& item : items) {
    // Not the undeliverable ones: a dead letter that is put on the topic again must be tried again.
    if (item.fate() != Fate::kDelivered && !item.parcel.unrecorded) continue;
    ids.push_back(item.parcel.event.id);
    created.push_back(item.parcel.event.created_at);
  }
  return Insist("cannot write the delivered IDs",
                [&] { return parts_.delivered.Add(ids, created); });
}

// Continuing without it would lose a message or deliver it twice, so this must wait.
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
    if (item.fate() != Fate::kWaiting) parts_.stats.Count(ResultOf(item.fate()));
  }
}

}  // namespace weir::notify
