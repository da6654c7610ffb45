#include "protocol/http/check_reader.h"

#include <simdjson.h>

#include <cstdint>
#include <utility>

#include "store/reserve/reservation.h"
#include "weir/quota.h"

namespace weir::http {
namespace {

namespace json = simdjson::ondemand;

Error Bad(std::string message) { return Error{Code::kInvalidArgument, std::move(message)}; }

Error BadJson() { return Bad("the body is not well-formed JSON"); }

/// Where we are in the body, for messages only: built when something is wrong.
struct Place {
  std::size_t check = 0;
  bool batch = false;

  std::string Field(std::string_view name) const {
    std::string text = batch ? "checks[" + std::to_string(check) + "]" : std::string();
    if (!name.empty()) text.append(text.empty() ? "" : ".").append(name);
    return text;
  }
  Error Wrong(std::string_view name, std::string_view what) const {
    std::string text = Field(name);
    return Bad(text.append(text.empty() ? "" : ": ").append(what));
  }
};

bool IsSyntaxError(simdjson::error_code error) {
  return error != simdjson::SUCCESS && error != simdjson::INCORRECT_TYPE &&
         error != simdjson::NUMBER_OUT_OF_RANGE;
}

}  // namespace

/// Thread safety: as CheckReader.
class CheckReader::Parser {
 public:
  Result<Found> Read(std::string_view body, Ask ask, CheckBatch& batch) {
    op_ = ask.op;
    reserve_ = ask.reserve;
    batch_ = &batch;
    Found found;
    found.first = batch.size();
    json::document document;
    const simdjson::padded_string_view padded(body.data(), body.size(),
                                              body.size() + simdjson::SIMDJSON_PADDING);
    if (body.empty())
      return Bad("the body is empty; send {\"key\": \"…\"} or see the API reference");
    if (parser_.iterate(padded).get(document) != simdjson::SUCCESS) return BadJson();
    json::object object;
    if (const auto error = document.get_object().get(object)) {
      return IsSyntaxError(error) ? BadJson() : Bad("the body must be a JSON object");
    }
    Status status = ReadRoot(object, found);
    // In bounds means that something follows the object.
    if (status.ok() && document.current_location().error() == simdjson::SUCCESS) status = BadJson();
    if (!status.ok()) {
      batch.Shrink(found.first);
      return status.error();
    }
    found.count = batch.size() - found.first;
    return found;
  }

 private:
  enum Seen : unsigned {
    kKey = 1,
    kDomain = 2,
    kDescriptors = 4,
    kCost = 8,
    kLease = 16,
    kChecks = 32,
    kLeases = 64,
    kOverdraw = 128,
    kReservation = 256,
    kExpires = 512
  };

  /// The root is one check, or an object with nothing but "checks".
  Status ReadRoot(json::object& object, Found& found) {
    limiter::Check& check = Begin();
    unsigned seen = 0;
    const Place place;
    for (auto element : object) {
      json::field field;
      if (std::move(element).get(field) != simdjson::SUCCESS) return BadJson();
      std::string_view name;
      if (field.unescaped_key().get(name) != simdjson::SUCCESS) return BadJson();
      if (name == "checks") {
        if (seen != 0) return Bad("checks: must be the only field of the body");
        seen = kChecks;
        batch_->Shrink(found.first);
        found.batch = true;
        if (Status status = ReadChecks(field.value()); !status.ok()) return status;
        continue;
      }
      if ((seen & kChecks) != 0) return Bad("checks: must be the only field of the body");
      if (Status status = ReadField(name, field.value(), check, seen, place); !status.ok()) {
        return status;
      }
    }
    if ((seen & kChecks) != 0) return {};
    return Finish(check, seen, place);
  }

  Status ReadChecks(json::value value) {
    json::array array;
    if (const auto error = value.get_array().get(array)) {
      return IsSyntaxError(error) ? BadJson() : Bad("checks: must be an array");
    }
    Place place{.check = 0, .batch = true};
    for (auto element : array) {
      if (place.check == kMaxChecks) {
        return Bad("checks: at most " + std::to_string(kMaxChecks) + " in one request");
      }
      json::object object;
      if (const auto error = element.get_object().get(object)) {
        return IsSyntaxError(error) ? BadJson() : place.Wrong("", "must be an object");
      }
      if (Status status = ReadCheck(object, place); !status.ok()) return status;
      ++place.check;
    }
    if (place.check == 0) return Bad("checks: must hold at least one check");
    return {};
  }

  Status ReadCheck(json::object& object, const Place& place) {
    limiter::Check& check = Begin();
    unsigned seen = 0;
    for (auto element : object) {
      json::field field;
      if (std::move(element).get(field) != simdjson::SUCCESS) return BadJson();
      std::string_view name;
      if (field.unescaped_key().get(name) != simdjson::SUCCESS) return BadJson();
      if (Status status = ReadField(name, field.value(), check, seen, place); !status.ok()) {
        return status;
      }
    }
    return Finish(check, seen, place);
  }

  limiter::Check& Begin() {
    limiter::Check& check = batch_->Add();
    check.op = op_;
    if (reserve_) check.reserve = store::reserve::kUsual;
    return check;
  }

  Status ReadField(std::string_view name, json::value value, limiter::Check& check, unsigned& seen,
                   const Place& place) {
    unsigned bit = 0;
    Status status;
    const bool settles = op_ == store::Op::kSettle;
    if (settles && name != "reservation" && name != "cost") {
      return place.Wrong(std::string(name.substr(0, kMaxNameBytes)), UnknownField());
    }
    if (name == "key") {
      bit = kKey;
      status = ReadText(value, name, kMaxValueBytes, check.request.key, place);
    } else if (name == "cost") {
      bit = kCost;
      status = ReadInteger(value, name, 0, kMaxLimit, check.request.cost, place);
    } else if (name == "descriptors") {
      bit = kDescriptors;
      status = ReadDescriptors(value, check.request.descriptors, place);
    } else if (name == "domain") {
      bit = kDomain;
      status = ReadText(value, name, kMaxNameBytes, check.request.domain, place);
    } else if (name == "reservation" && settles) {
      bit = kReservation;
      status = ReadText(value, name, store::reserve::kMaxText, check.settles, place);
    } else if (name == "expiresAfterMs" && reserve_) {
      bit = kExpires;
      std::int64_t millis = 0;
      status = ReadInteger(value, name, store::reserve::kShortest.count(),
                           store::reserve::kLongest.count(), millis, place);
      check.reserve = std::chrono::milliseconds(millis);
    } else if (name == "overdraw" && op_ == store::Op::kCharge && !reserve_) {
      bit = kOverdraw;
      status = ReadOverdraw(value, check, place);
    } else if (name == "lease" && op_ == store::Op::kRelease) {
      bit = kLease;
      status = ReadInteger(value, name, 1, INT64_MAX, check.lease, place);
    } else if (name == "leases" && op_ == store::Op::kRelease) {
      bit = kLeases;
      status = ReadPermits(value, name, check.permits, place);
    } else {
      return place.Wrong(std::string(name.substr(0, kMaxNameBytes)), UnknownField());
    }
    if (status.ok() && (seen & bit) != 0) return place.Wrong(name, "is given twice");
    seen |= bit;
    return status;
  }

  Status Finish(const limiter::Check& check, unsigned seen, const Place& place) const {
    if (op_ == store::Op::kSettle) {
      if ((seen & kReservation) == 0) return place.Wrong("reservation", "is missing");
      return (seen & kCost) != 0 ? Status() : place.Wrong("cost", "is missing");
    }
    const bool by_key = (seen & kKey) != 0;
    if (by_key && (seen & (kDomain | kDescriptors)) != 0) {
      return place.Wrong("key", "cannot be combined with domain or descriptors");
    }
    if (!by_key && (seen & kDescriptors) == 0) {
      return place.Wrong("", "give either key or descriptors");
    }
    if (op_ == store::Op::kRelease && (seen & (kLease | kLeases)) == 0) {
      return place.Wrong("leases", "is missing; it is in the answer to the check");
    }
    if ((seen & kLease) != 0 && (seen & kLeases) != 0) {
      return place.Wrong("leases", "cannot be combined with lease, which is one of them");
    }
    if ((op_ == store::Op::kRefund || reserve_) && check.request.cost == 0) {
      return place.Wrong("cost", "must be at least 1");
    }
    return {};
  }

  std::string_view UnknownField() const noexcept {
    switch (op_) {
      case store::Op::kRelease:
        return "is not a field of a release; those are key, domain, descriptors, lease, leases and "
               "cost";
      case store::Op::kSettle:
        return "is not a field of a settlement; those are reservation and cost";
      case store::Op::kCharge:
        if (reserve_) {
          return "is not a field of a reservation; those are key, domain, descriptors, cost and "
                 "expiresAfterMs";
        }
        return "is not a field of a check; those are key, domain, descriptors, cost and overdraw";
      default:
        return "is not a field here; those are key, domain, descriptors and cost";
    }
  }

  static Status ReadOverdraw(json::value value, limiter::Check& check, const Place& place) {
    bool overdraw = false;
    if (const auto error = value.get_bool().get(overdraw)) {
      return IsSyntaxError(error) ? BadJson() : place.Wrong("overdraw", "must be true or false");
    }
    if (overdraw) check.op = store::Op::kOverdraw;
    return {};
  }

  Status ReadText(json::value value, std::string_view name, std::size_t longest,
                  std::string_view& text, const Place& place) {
    std::string_view found;
    if (const auto error = value.get_string().get(found)) {
      return IsSyntaxError(error) ? BadJson() : place.Wrong(name, "must be a string");
    }
    if (found.empty()) return place.Wrong(name, "must not be empty");
    if (found.size() > longest) {
      return place.Wrong(name, "must not be longer than " + std::to_string(longest) + " bytes");
    }
    // The JSON parser reuses its memory for the next body of the batch.
    text = batch_->arena().Copy(found);
    return {};
  }

  static Status ReadPermits(json::value value, std::string_view name,
                            std::vector<limiter::Permit>& permits, const Place& place) {
    std::string_view found;
    if (const auto error = value.get_string().get(found)) {
      return IsSyntaxError(error) ? BadJson() : place.Wrong(name, "must be a string");
    }
    const Status parsed = limiter::ParsePermits(found, permits);
    return parsed.ok() ? parsed : place.Wrong(name, parsed.error().message);
  }

  static Status ReadInteger(json::value value, std::string_view name, std::int64_t least,
                            std::int64_t most, std::int64_t& number, const Place& place) {
    json::json_type type{};
    if (value.type().get(type) != simdjson::SUCCESS) return BadJson();
    const bool in_range = type == json::json_type::number &&
                          value.get_int64().get(number) == simdjson::SUCCESS && number >= least &&
                          number <= most;
    if (in_range) return {};
    return place.Wrong(
        name, "must be an integer from " + std::to_string(least) + " to " + std::to_string(most));
  }

  Status ReadDescriptors(json::value value, std::span<const policy::Descriptor>& descriptors,
                         const Place& place) {
    json::array array;
    if (const auto error = value.get_array().get(array)) {
      return IsSyntaxError(error) ? BadJson() : place.Wrong("descriptors", "must be an array");
    }
    descriptors_.clear();
    for (auto element : array) {
      if (descriptors_.size() == kMaxDescriptors) {
        return place.Wrong("descriptors", "at most " + std::to_string(kMaxDescriptors));
      }
      json::value descriptor;
      if (element.get(descriptor) != simdjson::SUCCESS) return BadJson();
      entries_.clear();
      if (Status status = ReadDescriptor(descriptor, place); !status.ok()) return status;
      if (entries_.empty()) {
        return place.Wrong(DescriptorName(), "must hold at least one entry");
      }
      descriptors_.push_back(batch_->arena().Copy(std::span<const policy::Entry>(entries_)));
    }
    if (descriptors_.empty()) return place.Wrong("descriptors", "must hold at least one");
    descriptors = batch_->arena().Copy(std::span<const policy::Descriptor>(descriptors_));
    return {};
  }

  std::string DescriptorName() const {
    return "descriptors[" + std::to_string(descriptors_.size()) + "]";
  }

  /// {"user":"42"} or [{"key":"user","value":"42"}].
  Status ReadDescriptor(json::value value, const Place& place) {
    json::json_type type{};
    if (value.type().get(type) != simdjson::SUCCESS) return BadJson();
    if (type == json::json_type::object) return ReadEntryFields(value, place);
    if (type == json::json_type::array) return ReadEntryList(value, place);
    return place.Wrong(DescriptorName(), "must be an object or an array of {key, value}");
  }

  Status AddEntry(const policy::Entry& entry, const Place& place) {
    if (entries_.size() == kMaxEntries) {
      return place.Wrong(DescriptorName(), "at most " + std::to_string(kMaxEntries) + " entries");
    }
    entries_.push_back(entry);
    return {};
  }

  Status ReadEntryFields(json::value value, const Place& place) {
    json::object object;
    if (value.get_object().get(object) != simdjson::SUCCESS) return BadJson();
    for (auto element : object) {
      json::field field;
      std::string_view name;
      if (std::move(element).get(field) != simdjson::SUCCESS) return BadJson();
      if (field.unescaped_key().get(name) != simdjson::SUCCESS) return BadJson();
      if (name.empty() || name.size() > kMaxNameBytes) {
        return place.Wrong(DescriptorName(),
                           "a name must have 1 to " + std::to_string(kMaxNameBytes) + " bytes");
      }
      policy::Entry entry;
      entry.key = batch_->arena().Copy(name);
      if (Status status = ReadEntryValue(field.value(), entry, place); !status.ok()) return status;
      if (Status status = AddEntry(entry, place); !status.ok()) return status;
    }
    return {};
  }

  Status ReadEntryValue(json::value value, policy::Entry& entry, const Place& place) {
    std::string_view found;
    const auto error = value.get_string().get(found);
    if (IsSyntaxError(error)) return BadJson();
    if (error != simdjson::SUCCESS || found.size() > kMaxValueBytes) {
      return place.Wrong(
          DescriptorName() + "." + std::string(entry.key),
          "must be a string of at most " + std::to_string(kMaxValueBytes) + " bytes");
    }
    entry.value = batch_->arena().Copy(found);
    return {};
  }

  Status ReadEntryList(json::value value, const Place& place) {
    json::array array;
    if (value.get_array().get(array) != simdjson::SUCCESS) return BadJson();
    for (auto element : array) {
      json::object object;
      if (const auto error = element.get_object().get(object)) {
        return IsSyntaxError(error)
                   ? BadJson()
                   : place.Wrong(DescriptorName(), "must hold objects of key and value");
      }
      policy::Entry entry;
      if (Status status = ReadEntry(object, entry, place); !status.ok()) return status;
      if (Status status = AddEntry(entry, place); !status.ok()) return status;
    }
    return {};
  }

  Status ReadEntry(json::object& object, policy::Entry& entry, const Place& place) {
    for (auto element : object) {
      json::field field;
      std::string_view name;
      if (std::move(element).get(field) != simdjson::SUCCESS) return BadJson();
      if (field.unescaped_key().get(name) != simdjson::SUCCESS) return BadJson();
      if (name == "key") {
        Status status =
            ReadText(field.value(), DescriptorName() + ".key", kMaxNameBytes, entry.key, place);
        if (!status.ok()) return status;
      } else if (name == "value") {
        Status status = ReadEntryValue(field.value(), entry, place);
        if (!status.ok()) return status;
      } else {
        return place.Wrong(DescriptorName(), "must hold objects of key and value");
      }
    }
    if (entry.key.empty()) return place.Wrong(DescriptorName(), "an entry lacks its key");
    return {};
  }

  json::parser parser_;
  store::Op op_ = store::Op::kCharge;
  bool reserve_ = false;
  CheckBatch* batch_ = nullptr;
  std::vector<policy::Entry> entries_;
  std::vector<policy::Descriptor> descriptors_;
};

CheckReader::CheckReader() : parser_(std::make_unique<Parser>()) {}
CheckReader::~CheckReader() = default;

Result<CheckReader::Found> CheckReader::Read(std::string_view body, Ask ask, CheckBatch& batch) {
  return parser_->Read(body, ask, batch);
}

}  // namespace weir::http
