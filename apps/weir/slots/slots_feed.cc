#include "slots/slots_feed.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/json_problem.h"
#include "console.h"
#include "protocol/http/json_body.h"
#include "slots/config.h"

namespace weir::app {
namespace {

constexpr std::size_t kMaxLine = 64 * 1024;
constexpr std::size_t kMostShown = 64;    // of a name
constexpr std::size_t kMostOthers = 100;  // names: a feed may use another one in each line
constexpr std::array<std::string_view, 5> kFields = {"eventId", "configName", "requestedTime",
                                                     "tenant", "payload"};

bool IsField(std::string_view name) {
  return std::find(kFields.begin(), kFields.end(), name) != kFields.end();
}

/// A misspelt time or payload that is ignored makes another payment of each line. Where the right
/// one is there as well, only another spelling of it is suspicious: "events" has its own meaning.
Status CheckColumn(std::string_view name, const std::vector<std::string>& columns) {
  std::optional<std::string_view> meant = http::MeantField(name, kFields);
  if (!meant) {
    meant = http::NearField(name, kFields);
    if (!meant || std::find(columns.begin(), columns.end(), *meant) != columns.end()) return {};
  }
  return Invalid("unknown column " + Shown(name, kMostShown) + "; did you mean " +
                 std::string(*meant) + "?");
}

}  // namespace

FeedReader::FeedReader(std::string path, std::ifstream in, FeedDefaults defaults, bool json)
    : path_(std::move(path)), in_(std::move(in)), defaults_(std::move(defaults)), json_(json) {}

Result<FeedReader> FeedReader::Open(const std::string& path, FeedDefaults defaults) {
  const std::string kind = std::filesystem::path(path).extension();
  if (kind != ".csv" && kind != ".jsonl") {
    return Invalid(path + ": a feed must be a .csv or .jsonl file");
  }
  Result<std::ifstream> in = OpenFile(path);
  if (!in.ok()) return Invalid(path + ": " + in.error().message);
  FeedReader reader(path, std::move(*in), std::move(defaults), kind == ".jsonl");
  std::error_code error;
  reader.bytes_total_ = static_cast<std::int64_t>(std::filesystem::file_size(path, error));
  if (kind == ".csv") {
    const Status header = reader.ReadHeader();
    if (Status s = reader.ended(); !s.ok()) return s.error();
    if (!header.ok()) return Invalid(path + ": " + header.error().message);
    if (!reader.ignored_.empty()) {
      std::cerr << "weir: " << path << ": ignored columns: " << reader.ignored_ << '\n';
    }
  }
  return reader;
}

std::optional<std::string> FeedReader::NextLine() {
  std::string line;
  while (std::getline(in_, line)) {
    bytes_read_ += static_cast<std::int64_t>(line.size()) + 1;
    ++line_;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.empty()) return line;
  }
  return std::nullopt;
}

Status FeedReader::ReadHeader() {
  const std::optional<std::string> line = NextLine();
  if (!line) return Invalid("is empty; the first line must name the columns");
  Result<std::vector<std::string>> columns = SplitCsv(WithoutMark(*line));
  if (!columns.ok()) return columns.error();
  columns_ = *std::move(columns);
  for (const std::string& column : columns_) {
    if (Status s = CheckColumn(column, columns_); !s.ok()) return s;
    if (!IsField(column)) ignored_ += (ignored_.empty() ? "" : ", ") + Shown(column, kMostShown);
    if (IsField(column) && std::count(columns_.begin(), columns_.end(), column) > 1) {
      return Invalid("column " + column + " is there twice");
    }
  }
  if (std::find(columns_.begin(), columns_.end(), "eventId") == columns_.end()) {
    return Invalid(
        "the first line must name the columns, including eventId, separated by commas; "
        "it is: " +
        Shown(*line, 80));
  }
  return CheckDefaults();
}

// Every line would be refused for it.
Status FeedReader::CheckDefaults() const {
  const auto missing = [this](std::string_view column) {
    return std::find(columns_.begin(), columns_.end(), column) == columns_.end();
  };
  if (!defaults_.requested && missing("requestedTime")) {
    return Invalid("has no column requestedTime; add it, or give --at TIME or --at now");
  }
  if (defaults_.config.empty() && missing("configName")) {
    return Invalid("has no column configName; add it, or give --config");
  }
  return {};
}

std::optional<FeedEvent> FeedReader::Next() {
  const std::optional<std::string> line = NextLine();
  if (!line) return std::nullopt;
  FeedEvent event;
  const bool too_long = line->size() > kMaxLine;
  if (!json_) {
    event = FromCsv(*line);
  } else if (!too_long) {
    event = FromJson(*line);
  }
  event.line = line_;
  if (too_long) event.status = Invalid("is longer than " + std::to_string(kMaxLine) + " bytes");
  if (!event.status.ok()) {
    // A line of the results each, also if there is a line break in them.
    event.status =
        Invalid("line " + std::to_string(line_) + ": " + Shown(event.status.error().message));
    event.ask.event_id = Shown(event.ask.event_id);
    event.ask.config = Shown(event.ask.config);
  }
  return event;
}

Status FeedReader::ended() const {
  if (!in_.bad()) return {};
  return Error{Code::kUnavailable, path_ + ": cannot be read to its end"};
}

Status FeedReader::Fill(FeedEvent& event, const std::string& time) const {
  slots::Ask& ask = event.ask;
  if (ask.config.empty()) ask.config = defaults_.config;
  Status s = slots::CheckName("eventId", ask.event_id, slots::kMaxEventIdBytes);
  if (!s.ok()) return s;
  if (ask.config.empty()) return Invalid("configName is missing; give --config");
  s = slots::CheckName("configName", ask.config, slots::kMaxNameBytes);
  if (!s.ok()) return s;
  if (!ask.tenant.empty()) s = slots::CheckName("tenant", ask.tenant, slots::kMaxNameBytes);
  if (!s.ok()) return s;
  if (s = slots::CheckPayload(ask.payload); !s.ok()) return s;
  if (time.empty()) {
    if (!defaults_.requested) return Invalid("requestedTime is missing; give --at");
    ask.requested = *defaults_.requested;
    return {};
  }
  Result<slots::Millis> instant = slots::ParseInstant(time);
  if (!instant.ok()) return Invalid("requestedTime " + instant.error().message);
  ask.requested = *instant;
  return {};
}

FeedEvent FeedReader::FromCsv(const std::string& line) {
  FeedEvent event;
  const bool whole = csv_.open() == 0;
  const Result<std::vector<std::string>> fields = csv_.Split(line, line_);
  if (!fields.ok()) {
    event.status = fields.error();
    // So that the report names it. Within a field that another line leaves open, nothing is a row.
    const std::size_t id = static_cast<std::size_t>(
        std::find(columns_.begin(), columns_.end(), "eventId") - columns_.begin());
    std::vector<std::string> read = whole ? FieldsBeforeError(line) : std::vector<std::string>();
    if (id < read.size()) event.ask.event_id = std::move(read[id]);
    return event;
  }
  std::string time;
  for (std::size_t i = 0; i < std::min(fields->size(), columns_.size()); ++i) {
    const std::string& value = (*fields)[i];
    if (columns_[i] == "eventId") event.ask.event_id = value;
    if (columns_[i] == "configName") event.ask.config = value;
    if (columns_[i] == "requestedTime") time = value;
    if (columns_[i] == "tenant") event.ask.tenant = value;
    if (columns_[i] == "payload") event.ask.payload = value;
  }
  // Truncated, or with a comma that is not quoted: the fields could be another payment's.
  if (fields->size() != columns_.size()) {
    event.status = Invalid("has " + std::to_string(fields->size()) + " fields; the header has " +
                           std::to_string(columns_.size()));
    return event;
  }
  event.status = Fill(event, time);
  return event;
}

void FeedReader::NoteOthers(const simdjson::dom::object& object) {
  for (const auto& [name, value] : object) {
    if (!IsField(name) && others_.size() < kMostOthers) others_.emplace(name);
  }
}

std::string FeedReader::Ignored() const {
  std::string names;
  for (const std::string& name : others_) {
    names += (names.empty() ? "" : ", ") + Shown(name, kMostShown);
  }
  return names.empty() ? names : path_ + ": ignored fields: " + names;
}

FeedEvent FeedReader::FromJson(const std::string& line) {
  static thread_local simdjson::dom::parser parser;
  FeedEvent event;
  simdjson::dom::object object;
  if (parser.parse(line).get(object) != simdjson::SUCCESS) {
    const std::string problem = JsonProblem(line);
    event.status = Invalid("must be a JSON object" + (problem.empty() ? "" : "; " + problem));
    return event;
  }
  std::string time;
  Status s = http::CheckSpelling(object, kFields);
  if (s.ok()) NoteOthers(object);
  const auto read = [&](const char* field, std::string& into) {
    if (s.ok()) s = http::ReadTextIfAny(object, field, into);
  };
  read("eventId", event.ask.event_id);
  read("configName", event.ask.config);
  read("tenant", event.ask.tenant);
  read("payload", event.ask.payload);
  read("requestedTime", time);
  event.status = s.ok() ? Fill(event, time) : s;
  return event;
}

}  // namespace weir::app
