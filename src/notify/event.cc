#include "notify/event.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <optional>
#include <random>
#include <utility>

#include "base/error.h"
#include "base/instant.h"
#include "base/json_writer.h"
#include "drivers/digest/sha256.h"

namespace weir::notify {
namespace {

namespace dom = simdjson::dom;

// FNV-1a with a finishing mix: stable between processes and versions, unlike std::hash.
std::uint64_t Fingerprint(std::string_view text) noexcept {
  std::uint64_t hash = 0xCBF29CE484222325U;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001B3U;
  }
  hash ^= hash >> 33U;
  hash *= 0xFF51AFD7ED558CCDU;
  hash ^= hash >> 33U;
  return hash;
}

// Version 8: the bits are application-defined. Version 4: they are random.
std::string Uuid(std::uint64_t high, std::uint64_t low, std::uint64_t version) {
  high = (high & 0xFFFFFFFFFFFF0FFFU) | (version << 12U);
  low = (low & 0x3FFFFFFFFFFFFFFFU) | 0x8000000000000000U;
  std::array<char, 37> text{};
  std::snprintf(text.data(), text.size(), "%08x-%04x-%04x-%04x-%012llx",
                static_cast<unsigned>(high >> 32U), static_cast<unsigned>(high >> 16U & 0xFFFFU),
                static_cast<unsigned>(high & 0xFFFFU), static_cast<unsigned>(low >> 48U),
                static_cast<unsigned long long>(low & 0xFFFFFFFFFFFFU));
  return text.data();
}

// The text that distinguishes a user's messages. With the default channel and recipient it is the
// message alone, for compatibility with versions that had neither.
std::string Content(const SendRequest& request) {
  if (request.channel == kDefaultChannel && request.recipient.empty()) return request.message;
  return request.message + '\0' + request.channel + '\0' + request.recipient;
}

std::string RandomId() {
  static thread_local std::mt19937_64 engine{std::random_device{}()};
  return Uuid(engine(), engine(), 4);
}

// A key that is reused after its lifetime makes another event. No text can contain NUL.
std::string KeyedId(const SendRequest& request, Micros lifetime) {
  std::string text = request.user_id + '\0' + request.idempotency_key + '\0' +
                     std::to_string(lifetime) + '\0' + Content(request);
  const Digest digest = Sha256(text);
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  std::memcpy(&high, digest.data(), sizeof high);
  std::memcpy(&low, digest.data() + sizeof high, sizeof low);
  return Uuid(high, low, 8);
}

// Accepts only the form that FormatTime writes.
std::optional<Micros> ParseTime(std::string_view text) {
  const std::optional<Nanos> instant = ParseInstant(text);
  if (!instant || FormatTime(*instant / 1000) != text) return std::nullopt;
  return *instant / 1000;
}

Result<std::string> TextField(const dom::object& object, const char* field, std::size_t max) {
  dom::element element;
  if (object[field].get(element) != simdjson::SUCCESS) {
    return Invalid(std::string(field) + " is missing");
  }
  std::string_view text;
  if (element.get(text) != simdjson::SUCCESS)
    return Invalid(std::string(field) + " must be a string");
  if (text.empty() || text.size() > max) {
    return Invalid(std::string(field) + " must have 1 to " + std::to_string(max) + " bytes");
  }
  return std::string(text);
}

// Reads channel and recipient: both may be absent.
Status ReadAddress(const dom::object& object, Event& event) {
  dom::element given;
  if (object["channel"].get(given) == simdjson::SUCCESS) {
    Result<std::string> channel = TextField(object, "channel", kMaxChannelBytes);
    if (!channel.ok()) return channel.error();
    if (Status s = CheckChannel(*channel); !s.ok()) return s;
    event.channel = std::move(*channel);
  }
  if (object["recipient"].get(given) == simdjson::SUCCESS) {
    Result<std::string> recipient = TextField(object, "recipient", kMaxRecipientBytes);
    if (!recipient.ok()) return recipient.error();
    const auto control = [](unsigned char c) { return c < 0x20 || c == 0x7F; };
    if (std::any_of(recipient->begin(), recipient->end(), control)) {
      return Invalid("recipient must not have control characters");
    }
    event.recipient = std::move(*recipient);
  }
  return {};
}

}  // namespace

Event MakeEvent(const SendRequest& request, Micros now) {
  const bool keyed = !request.idempotency_key.empty();
  const Micros day = now / kKeyLifetime;
  return {keyed ? KeyedId(request, day) : RandomId(),
          request.user_id,
          request.message,
          now,
          request.channel,
          request.recipient,
          keyed ? KeyedId(request, day - 1) : std::string()};
}

std::int64_t MessageDigest(const SendRequest& request) {
  return static_cast<std::int64_t>(Fingerprint(Content(request)));
}

std::string FormatTime(Micros time) {
  const Micros millis = time / 1000 - (time % 1000 < 0 ? 1 : 0);
  return FormatMillis(millis, Fraction::kAlways);
}

std::string EncodeEvent(const Event& event) {
  std::string out;
  out.reserve(event.message.size() + event.user_id.size() + 128);
  JsonWriter json(out);
  json.BeginObject()
      .Field("id", event.id)
      .Field("userId", event.user_id)
      .Field("message", event.message)
      .Field("timestamp", FormatTime(event.created_at));
  if (event.channel != kDefaultChannel) json.Field("channel", event.channel);
  if (!event.recipient.empty()) json.Field("recipient", event.recipient);
  if (!event.earlier_id.empty()) json.Field("earlierId", event.earlier_id);
  json.EndObject();
  return out;
}

Result<Event> DecodeEvent(std::string_view json) {
  static thread_local dom::parser parser;
  dom::object object;
  if (parser.parse(json.data(), json.size()).get(object) != simdjson::SUCCESS) {
    return Invalid("an event must be a JSON object");
  }
  Event event;
  struct Wanted {
    const char* name;
    std::size_t max;
    std::string& value;
  };
  for (const Wanted& wanted :
       {Wanted{"id", 64, event.id}, Wanted{"userId", kMaxUserIdBytes, event.user_id},
        Wanted{"message", kMaxMessageBytes, event.message}}) {
    Result<std::string> text = TextField(object, wanted.name, wanted.max);
    if (!text.ok()) return text.error();
    wanted.value = std::move(*text);
  }
  if (Status s = CheckUserId(event.user_id); !s.ok()) return s.error();
  // It is written to log lines and headers unchanged.
  if (std::any_of(event.id.begin(), event.id.end(), [](char c) { return c <= ' ' || c > '~'; })) {
    return Invalid("id must be printable ASCII without spaces");
  }
  dom::element earlier;
  if (object["earlierId"].get(earlier) == simdjson::SUCCESS) {
    Result<std::string> id = TextField(object, "earlierId", 64);
    if (!id.ok()) return id.error();
    event.earlier_id = std::move(*id);
  }
  std::string_view timestamp;
  if (object["timestamp"].get(timestamp) == simdjson::SUCCESS) {
    const std::optional<Micros> time = ParseTime(timestamp);
    if (!time) return Invalid("timestamp must look like 2026-01-02T03:04:05.678Z");
    event.created_at = *time;
  }
  if (Status s = ReadAddress(object, event); !s.ok()) return s.error();
  return event;
}

}  // namespace weir::notify
