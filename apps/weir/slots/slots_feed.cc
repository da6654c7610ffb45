#include "slots/slots_feed.h"

#include <simdjson.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "slots/config.h"

namespace weir::app {
namespace {

constexpr std::size_t kMaxLine = 64 * 1024;

}  // namespace

std::optional<std::vector<std::string>> SplitCsv(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += '"';
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  if (quoted) return std::nullopt;
  return fields;
}

void AppendCsv(std::string& out, const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) {
    out += text;
    return;
  }
  out += '"';
  for (char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

FeedReader::FeedReader(std::ifstream in, FeedDefaults defaults, bool json)
    : in_(std::move(in)), defaults_(std::move(defaults)), json_(json) {}

Result<FeedReader> FeedReader::Open(const std::string& path, FeedDefaults defaults) {
  const std::string kind = std::filesystem::path(path).extension();
  if (kind != ".csv" && kind != ".jsonl") {
    return Invalid(path + ": a feed must be a .csv or .jsonl file");
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) return Error{Code::kNotFound, path + ": cannot be read"};
  FeedReader reader(std::move(in), std::move(defaults), kind == ".jsonl");
  std::error_code error;
  reader.bytes_total_ = static_cast<std::int64_t>(std::filesystem::file_size(path, error));
  if (kind == ".csv") {
    if (Status s = reader.ReadHeader(); !s.ok()) return Invalid(path + ": " + s.error().message);
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
  const auto columns = SplitCsv(*line);
  if (columns) columns_ = *columns;
  if (std::find(columns_.begin(), columns_.end(), "eventId") == columns_.end()) {
    return Invalid("the first line must name the columns, including eventId");
  }
  return {};
}

std::optional<FeedEvent> FeedReader::Next() {
  const std::optional<std::string> line = NextLine();
  if (!line) return std::nullopt;
  FeedEvent event;
  if (line->size() > kMaxLine) {
    event.status = Invalid("is longer than " + std::to_string(kMaxLine) + " bytes");
  } else {
    event = json_ ? FromJson(*line) : FromCsv(*line);
  }
  if (!event.status.ok()) {
    event.status = Invalid("line " + std::to_string(line_) + ": " + event.status.error().message);
  }
  return event;
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
  if (ask.payload.size() > slots::kMaxPayloadBytes) {
    return Invalid("payload must not be longer than " + std::to_string(slots::kMaxPayloadBytes) +
                   " bytes");
  }
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

FeedEvent FeedReader::FromCsv(const std::string& line) const {
  FeedEvent event;
  const auto fields = SplitCsv(line);
  if (!fields) {
    event.status = Invalid("a quote is not closed");
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
  event.status = Fill(event, time);
  return event;
}

FeedEvent FeedReader::FromJson(const std::string& line) const {
  static thread_local simdjson::dom::parser parser;
  FeedEvent event;
  simdjson::dom::object object;
  if (parser.parse(line).get(object) != simdjson::SUCCESS) {
    event.status = Invalid("must be a JSON object");
    return event;
  }
  const auto text = [&object](const char* field) {
    std::string_view value;
    return object[field].get(value) == simdjson::SUCCESS ? std::string(value) : std::string();
  };
  event.ask.event_id = text("eventId");
  event.ask.config = text("configName");
  event.ask.tenant = text("tenant");
  event.ask.payload = text("payload");
  event.status = Fill(event, text("requestedTime"));
  return event;
}

}  // namespace weir::app
