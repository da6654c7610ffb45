#include "slots/slots_results.h"

#include <simdjson.h>

#include <filesystem>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/hex.h"
#include "base/json_writer.h"
#include "csv.h"
#include "drivers/digest/sha256.h"
#include "remote/json_fields.h"
#include "slots/slots_target.h"
#include "slots/time.h"

namespace weir::app {
namespace {

constexpr const char* kResultsHeader =
    "eventId,configName,requestedTime,scheduledTime,windowStart,delayMs,status\n";
constexpr std::int64_t kPartFormat = 1;
constexpr std::size_t kDigestSize = 2 * std::tuple_size_v<Digest>;
constexpr const char* kStartOver =
    "delete this file to start over; events that have a slot keep it";

/// Empty if the line of the feed was invalid.
std::string RequestedOf(const ResultLine& line) {
  return line.slot.requested == 0 ? std::string() : slots::FormatInstant(line.slot.requested);
}

void AppendCsvLine(std::string& out, const ResultLine& line) {
  AppendCsv(out, line.slot.event_id);
  out += ',';
  AppendCsv(out, line.slot.config);
  out += ',' + RequestedOf(line) + ',';
  if (line.placed) {
    out += slots::FormatInstant(line.slot.scheduled) + ',' +
           slots::FormatInstant(line.slot.window_start) + ',' +
           std::to_string(line.slot.scheduled - line.slot.requested);
  } else {
    out += ",,";
  }
  out += ',';
  AppendCsv(out, line.status);
  out += '\n';
}

void AppendJsonLine(std::string& out, const ResultLine& line) {
  JsonWriter json(out);
  json.BeginObject()
      .Field("eventId", line.slot.event_id)
      .Field("configName", line.slot.config)
      .Field("requestedTime", RequestedOf(line));
  if (line.placed) {
    json.Field("scheduledTime", slots::FormatInstant(line.slot.scheduled))
        .Field("windowStart", slots::FormatInstant(line.slot.window_start))
        .Field("delayMs", line.slot.scheduled - line.slot.requested);
  }
  json.Field("status", line.status).EndObject();
  out += '\n';
}

// Of what is sent for the event, or of why it is not.
std::string DigestOf(const FeedEvent& event) {
  std::string text;
  JsonWriter json(text);
  AppendAsk(json, event.ask);
  if (!event.status.ok()) text += event.status.error().message;
  std::string hex;
  for (const std::uint8_t byte : Sha256(text)) AppendHex(hex, byte);
  return hex;
}

std::string TermsLine(const ImportTerms& terms) {
  return JsonObject([&](JsonWriter& json) {
           json.Field("partFormat", kPartFormat)
               .Field("target", terms.target)
               .Field("config", terms.config)
               .Field("at", terms.at);
         }) +
         '\n';
}

std::string Given(const char* option, const std::string& value) {
  return value.empty() ? std::string("no ") + option : std::string(option) + " " + value;
}

}  // namespace

ResultsFile::ResultsFile(std::string path)
    : path_(std::move(path)), part_(path_ + ".part"), json_(path_.ends_with(".jsonl")) {}

Status ResultsFile::Resume(const ImportTerms& terms, FeedReader& feed,
                           const std::function<void(std::string_view)>& answered) {
  std::ifstream before(part_, std::ios::binary);
  std::uintmax_t whole = 0;
  std::string line;
  for (std::int64_t number = 1; before && std::getline(before, line) && !before.eof(); ++number) {
    const Status same = number == 1 ? CheckTerms(line, terms) : SkipAnswered(line, number, feed);
    if (!same.ok()) return same;
    whole += line.size() + 1;
    if (number > 1) answered(FieldOf(std::string_view(line).substr(kDigestSize + 1), "status"));
  }
  if (before.bad()) return Error{Code::kUnavailable, part_ + ": cannot be read to its end"};
  before.close();
  std::error_code error;
  if (std::filesystem::exists(part_)) std::filesystem::resize_file(part_, whole, error);
  out_.open(part_, std::ios::binary | std::ios::app);
  if (whole == 0) text_ = TermsLine(terms);
  if (error || !out_) return Error{Code::kInternal, part_ + ": cannot be written"};
  return {};
}

Status ResultsFile::CheckTerms(const std::string& line, const ImportTerms& terms) const {
  simdjson::dom::parser parser;
  simdjson::dom::element object;
  if (parser.parse(line).get(object) != simdjson::SUCCESS || !object.is_object() ||
      NumberOf(object, "partFormat") != kPartFormat) {
    return Invalid(part_ + ": was written by another version of weir; " + kStartOver);
  }
  const ImportTerms begun = {TextOf(object, "target"), TextOf(object, "config"),
                             TextOf(object, "at")};
  const auto differs = [&](const std::string& was, const std::string& is) {
    return Invalid(part_ + ": that import was begun with " + was + ", and this one has " + is +
                   ". Give the same to continue it, or " + kStartOver);
  };
  if (begun.config != terms.config) {
    return differs(Given("--config", begun.config), Given("--config", terms.config));
  }
  if (begun.at != terms.at) return differs(Given("--at", begun.at), Given("--at", terms.at));
  if (begun.target != terms.target) return differs(begun.target, terms.target);
  return {};
}

// Answers to other events would hide as many payments of this feed.
Status ResultsFile::SkipAnswered(std::string_view line, std::int64_t number,
                                 FeedReader& feed) const {
  const std::string at = "line " + std::to_string(number);
  if (line.size() <= kDigestSize || line[kDigestSize] != ' ') {
    return Invalid(part_ + ": " + at + " is damaged; " + kStartOver);
  }
  const std::optional<FeedEvent> event = feed.Next();
  const std::string answered = FieldOf(line.substr(kDigestSize + 1), "eventId");
  if (!event || event->ask.event_id != answered) {
    return Invalid(part_ + ": " + at + " is about " + answered + ", and the feed has " +
                   (event ? event->ask.event_id : "no more events") +
                   "; it belongs to another feed, or lines were added or removed, so " +
                   kStartOver);
  }
  if (line.substr(0, kDigestSize) == DigestOf(*event)) return {};
  return Invalid(feed.path() + ": line " + std::to_string(event->line) + ", event " + answered +
                 ": has changed since the interrupted import answered it. Restore the line to "
                 "continue, or delete " +
                 part_ +
                 " to import the changed feed from its start; an event that has a slot keeps it, "
                 "and is in conflict if it was changed");
}

std::string ResultsFile::FieldOf(std::string_view result, const char* name) const {
  if (!json_) {
    const Result<std::vector<std::string>> cells = SplitCsv(result);
    if (!cells.ok()) return std::string(result);
    return std::string_view(name) == "eventId" ? cells->front() : cells->back();
  }
  static thread_local simdjson::dom::parser parser;
  std::string_view value;
  return parser.parse(result.data(), result.size())[name].get(value) == simdjson::SUCCESS
             ? std::string(value)
             : std::string(result);
}

void ResultsFile::Add(const FeedEvent& event, const ResultLine& line) {
  text_ += DigestOf(event) + ' ';
  if (json_) {
    AppendJsonLine(text_, line);
  } else {
    AppendCsvLine(text_, line);
  }
}

Status ResultsFile::Flush() {
  out_ << text_ << std::flush;
  text_.clear();
  if (!out_) return Error{Code::kInternal, part_ + ": cannot be written; is the disk full?"};
  return {};
}

bool ResultsFile::CopyResults(const std::string& to) const {
  std::ifstream in(part_, std::ios::binary);
  std::ofstream out(to, std::ios::binary | std::ios::trunc);
  if (!json_) out << kResultsHeader;
  std::string line;
  std::getline(in, line);  // the terms
  while (std::getline(in, line)) {
    if (line.size() <= kDigestSize) return false;
    out << std::string_view(line).substr(kDigestSize + 1) << '\n';
  }
  return in.eof() && out.flush();
}

Status ResultsFile::Finish() {
  if (Status s = Flush(); !s.ok()) return s;
  out_.close();
  const std::string whole = path_ + ".tmp";
  std::error_code error;
  if (!CopyResults(whole)) {
    std::filesystem::remove(whole, error);
    return Error{Code::kInternal, whole + ": cannot be written; is the disk full?"};
  }
  std::filesystem::rename(whole, path_, error);
  if (error) {
    const std::string why = error.message();
    std::filesystem::remove(whole, error);
    return Error{Code::kInternal, path_ + ": " + why};
  }
  std::filesystem::remove(part_, error);
  return {};
}

}  // namespace weir::app
