#include "slots/api/calendar_json.h"

#include <utility>

#include "base/error.h"
#include "base/json_writer.h"
#include "protocol/http/json_body.h"

namespace weir::slots {
namespace {

namespace dom = simdjson::dom;

Status ReadTime(const dom::object& object, const char* field, int& minute) {
  if (!http::HasField(object, field)) return {};
  std::string_view text;
  const bool is_text = object[field].get(text) == simdjson::SUCCESS;
  Result<int> time = is_text ? ParseTimeOfDay(text) : ParseTimeOfDay("");
  if (!time.ok()) return Invalid("calendar." + std::string(field) + " " + time.error().message);
  minute = *time;
  return {};
}

Status ReadDays(const dom::object& object, Calendar& calendar) {
  Result<std::uint8_t> workdays = ParseDays("MON-FRI");
  calendar.days = *workdays;
  if (!http::HasField(object, "days")) return {};
  dom::array days;
  if (object["days"].get(days) != simdjson::SUCCESS) {
    return Invalid("calendar.days must be an array of MON, TUE, WED, THU, FRI, SAT and SUN");
  }
  calendar.days = 0;
  for (const dom::element day : days) {
    std::string_view name;
    if (day.get(name) != simdjson::SUCCESS) name = "";
    Result<std::uint8_t> bits = ParseDays(name);
    if (!bits.ok() || name.size() != 3) {
      return Invalid("calendar.days must be an array of MON, TUE, WED, THU, FRI, SAT and SUN");
    }
    calendar.days = static_cast<std::uint8_t>(calendar.days | *bits);
  }
  return {};
}

Status AddDay(std::string_view field, std::string_view date, int cut_off, Calendar& calendar) {
  Result<zone::Day> day = ParseDate(date);
  if (!day.ok()) return Invalid("calendar." + std::string(field) + " " + day.error().message);
  if (calendar.special.size() > kMaxSpecialDays) return {};  // CheckCalendar rejects it
  calendar.special.emplace_back(*day, cut_off);
  return {};
}

Status ReadSpecialDays(const dom::object& object, Calendar& calendar) {
  if (http::HasField(object, "holidays")) {
    dom::array holidays;
    if (object["holidays"].get(holidays) != simdjson::SUCCESS) {
      return Invalid("calendar.holidays must be an array of dates");
    }
    for (const dom::element holiday : holidays) {
      std::string_view date;
      if (holiday.get(date) != simdjson::SUCCESS) date = "";
      if (Status s = AddDay("holidays", date, 0, calendar); !s.ok()) return s;
    }
  }
  if (!http::HasField(object, "cutOffs")) return {};
  dom::object cut_offs;
  if (object["cutOffs"].get(cut_offs) != simdjson::SUCCESS) {
    return Invalid("calendar.cutOffs must be an object of dates and times of day");
  }
  for (const auto& [date, time] : cut_offs) {
    std::string_view text;
    if (time.get(text) != simdjson::SUCCESS) text = "";
    Result<int> minute = ParseTimeOfDay(text);
    if (!minute.ok()) return Invalid("calendar.cutOffs " + minute.error().message);
    if (Status s = AddDay("cutOffs", date, *minute, calendar); !s.ok()) return s;
  }
  return {};
}

Result<Calendar> ReadCalendar(const dom::object& object) {
  Calendar calendar;
  Status known = http::CheckFields(object, "a calendar",
                                   {"zone", "days", "open", "cutOff", "holidays", "cutOffs"});
  if (!known.ok()) return known.error();
  std::string_view zone;
  if (object["zone"].get(zone) != simdjson::SUCCESS || zone.empty()) {
    return Invalid("calendar.zone must be a time zone such as Europe/Berlin");
  }
  calendar.zone = zone;
  if (Status s = ReadDays(object, calendar); !s.ok()) return s.error();
  if (Status s = ReadTime(object, "open", calendar.open); !s.ok()) return s.error();
  if (Status s = ReadTime(object, "cutOff", calendar.cut_off); !s.ok()) return s.error();
  if (Status s = ReadSpecialDays(object, calendar); !s.ok()) return s.error();
  return calendar;
}

void AppendCalendar(JsonWriter& json, const Calendar& calendar) {
  json.Key("calendar").BeginObject().Field("zone", calendar.zone).Key("days").BeginArray();
  for (int day = 0; day < 7; ++day) {
    if ((calendar.days >> static_cast<unsigned>(day) & 1U) != 0) json.Value(WeekdayName(day));
  }
  json.EndArray()
      .Field("open", FormatTimeOfDay(calendar.open))
      .Field("cutOff", FormatTimeOfDay(calendar.cut_off));
  const auto is_holiday = [&calendar](int cut_off) { return cut_off <= calendar.open; };
  json.Key("holidays").BeginArray();
  for (const auto& [day, cut_off] : calendar.special) {
    if (is_holiday(cut_off)) json.Value(FormatDate(day));
  }
  json.EndArray().Key("cutOffs").BeginObject();
  for (const auto& [day, cut_off] : calendar.special) {
    if (!is_holiday(cut_off)) json.AnyKey(FormatDate(day)).Value(FormatTimeOfDay(cut_off));
  }
  json.EndObject().EndObject();
}

}  // namespace

Status ReadTiming(const dom::object& object, Config& config) {
  if (http::HasField(object, "calendar")) {
    dom::object fields;
    if (object["calendar"].get(fields) != simdjson::SUCCESS) {
      return Invalid("calendar must be an object");
    }
    Result<Calendar> calendar = ReadCalendar(fields);
    if (!calendar.ok()) return calendar.error();
    config.calendar = std::move(*calendar);
  }
  if (!http::HasField(object, "past")) return {};
  std::string_view past;
  if (object["past"].get(past) != simdjson::SUCCESS) past = "";
  if (past != "keep" && past != "now" && past != "refuse") {
    return Invalid("past must be keep, now or refuse");
  }
  config.past = past == "keep" ? Past::kKeep : past == "now" ? Past::kNow : Past::kRefuse;
  return {};
}

void AppendTiming(JsonWriter& json, const Config& config) {
  if (config.calendar.any()) AppendCalendar(json, config.calendar);
  if (config.past == Past::kKeep) return;
  json.Field("past", config.past == Past::kNow ? "now" : "refuse");
}

}  // namespace weir::slots
