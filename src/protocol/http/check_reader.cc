#include "protocol/http/check_reader.h"

#include <simdjson.h>

#include <cstdint>
#include <initializer_list>

#include "base/nearest.h"
#include "protocol/http/check_json.h"
#include "protocol/http/descriptor_reader.h"
#include "store/reserve/reservation.h"
#include "weir/quota.h"

namespace weir::http {

namespace json = simdjson::ondemand;

/// Thread safety: as CheckReader.
class CheckReader::Parser {
 public:
  Result<Found> Read(std::string_view body, Ask ask, CheckBatch& batch) {
    Result<Found> found = ReadBody(body, ask, batch);
    // Everything is copied into the batch. The memory of a large body is not kept for small ones.
    if (parser_.capacity() > kKept) parser_ = json::parser();
    if (!found.ok()) return Located(found.error(), body);
    return found;
  }

 private:
  static constexpr std::size_t kKept = std::size_t{64} << 10U;

  Result<Found> ReadBody(std::string_view body, Ask ask, CheckBatch& batch) {
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

  /// The root is one check, or an object that contains only "checks".
  Status ReadRoot(json::object& object, Found& found) {
    limiter::Check& check = Begin();
    unsigned seen = 0;
    const Place place;
    Status read = ReadFields(object, [&](std::string_view name, json::value value) -> Status {
      if (name == "checks") {
        if (seen != 0) return Bad("checks: must be the only field of the body");
        seen = kChecks;
        batch_->Shrink(found.first);
        found.batch = true;
        return ReadChecks(value);
      }
      if ((seen & kChecks) != 0) return Bad("checks: must be the only field of the body");
      return ReadField(name, value, check, seen, place);
    });
    if (!read.ok() || (seen & kChecks) != 0) return read;
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
    if (place.check == 0) return Bad("checks: must contain at least one check");
    return {};
  }

  Status ReadCheck(json::object& object, const Place& place) {
    limiter::Check& check = Begin();
    unsigned seen = 0;
    Status read = ReadFields(object, [&](std::string_view name, json::value value) {
      return ReadField(name, value, check, seen, place);
    });
    return read.ok() ? Finish(check, seen, place) : read;
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
      return UnknownField(name, place);
    }
    if (name == "key") {
      bit = kKey;
      status = ReadText(value, name, kMaxValueBytes, check.request.key, *batch_, place);
    } else if (name == "cost") {
      bit = kCost;
      status = ReadInteger(value, name, 0, kMaxLimit, check.request.cost, place);
    } else if (name == "descriptors") {
      bit = kDescriptors;
      status = descriptors_.Read(value, *batch_, place, check.request.descriptors);
    } else if (name == "domain") {
      bit = kDomain;
      status = ReadText(value, name, kMaxNameBytes, check.request.domain, *batch_, place);
    } else if (name == "reservation" && settles) {
      bit = kReservation;
      status = ReadText(value, name, store::reserve::kMaxText, check.settles, *batch_, place);
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
      return UnknownField(name, place);
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
      return place.Wrong("leases", "is missing; the response to the check contains it");
    }
    if ((seen & kLease) != 0 && (seen & kLeases) != 0) {
      return place.Wrong("leases", "cannot be combined with lease, which is one of them");
    }
    if ((op_ == store::Op::kRefund || reserve_) && check.request.cost == 0) {
      return place.Wrong("cost", "must be at least 1");
    }
    return {};
  }

  Error UnknownField(std::string_view name, const Place& place) const {
    const auto wrong = [&](std::string_view what, std::initializer_list<std::string_view> fields) {
      return place.Wrong(name.substr(0, kMaxNameBytes), NotAField(name, what, {fields}));
    };
    switch (op_) {
      case store::Op::kRelease:
        return wrong("a release", {"key", "domain", "descriptors", "lease", "leases", "cost"});
      case store::Op::kSettle:
        return wrong("a settlement", {"reservation", "cost"});
      case store::Op::kCharge:
        if (!reserve_)
          return wrong("a check", {"key", "domain", "descriptors", "cost", "overdraw"});
        return wrong("a reservation", {"key", "domain", "descriptors", "cost", "expiresAfterMs"});
      default:
        return wrong("this call", {"key", "domain", "descriptors", "cost"});
    }
  }

  static Status ReadOverdraw(json::value value, limiter::Check& check, const Place& place) {
    bool overdraw = false;
    if (const auto error = value.get_bool().get(overdraw)) {
      return IsSyntaxError(error)
                 ? BadJson()
                 : place.Wrong("overdraw", "must be true or false, not " + Shown(value));
    }
    if (overdraw) check.op = store::Op::kOverdraw;
    return {};
  }

  static Status ReadPermits(json::value value, std::string_view name,
                            std::vector<limiter::Permit>& permits, const Place& place) {
    std::string_view found;
    if (const auto error = value.get_string().get(found)) {
      return IsSyntaxError(error) ? BadJson()
                                  : place.Wrong(name, "must be a string, not " + Shown(value));
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
    return place.Wrong(name, "must be an integer from " + std::to_string(least) + " to " +
                                 std::to_string(most) + ", not " + Shown(value));
  }

  json::parser parser_;
  store::Op op_ = store::Op::kCharge;
  bool reserve_ = false;
  CheckBatch* batch_ = nullptr;
  DescriptorReader descriptors_;
};

CheckReader::CheckReader() : parser_(std::make_unique<Parser>()) {}
CheckReader::~CheckReader() = default;

Result<CheckReader::Found> CheckReader::Read(std::string_view body, Ask ask, CheckBatch& batch) {
  return parser_->Read(body, ask, batch);
}

}  // namespace weir::http
