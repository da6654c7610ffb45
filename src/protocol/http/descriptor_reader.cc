#include "protocol/http/descriptor_reader.h"

#include <utility>

#include "protocol/http/check_reader.h"

namespace weir::http {

namespace json = simdjson::ondemand;

Status ReadText(json::value value, std::string_view name, std::size_t longest,
                std::string_view& text, CheckBatch& batch, const Place& place) {
  std::string_view found;
  if (const auto error = value.get_string().get(found)) {
    return IsSyntaxError(error) ? BadJson()
                                : place.Wrong(name, "must be a string, not " + Shown(value));
  }
  if (found.empty()) return place.Wrong(name, "must not be empty");
  if (found.size() > longest) {
    return place.Wrong(name, "must not be longer than " + std::to_string(longest) + " bytes");
  }
  text = batch.arena().Copy(found);
  return {};
}

Status DescriptorReader::Read(json::value value, CheckBatch& batch, const Place& place,
                              std::span<const policy::Descriptor>& descriptors) {
  batch_ = &batch;
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
      return place.Wrong(Name(), "must contain at least one entry");
    }
    descriptors_.push_back(batch_->arena().Copy(std::span<const policy::Entry>(entries_)));
  }
  if (descriptors_.empty()) return place.Wrong("descriptors", "must contain at least one");
  descriptors = batch_->arena().Copy(std::span<const policy::Descriptor>(descriptors_));
  return {};
}

std::string DescriptorReader::Name() const {
  return "descriptors[" + std::to_string(descriptors_.size()) + "]";
}

/// {"user":"42"} or [{"key":"user","value":"42"}].
Status DescriptorReader::ReadDescriptor(json::value value, const Place& place) {
  json::json_type type{};
  if (value.type().get(type) != simdjson::SUCCESS) return BadJson();
  if (type == json::json_type::object) return ReadEntryFields(value, place);
  if (type == json::json_type::array) return ReadEntryList(value, place);
  return place.Wrong(Name(), "must be an object or an array of {key, value}");
}

Status DescriptorReader::AddEntry(const policy::Entry& entry, const Place& place) {
  if (entries_.size() == kMaxEntries) {
    return place.Wrong(Name(), "at most " + std::to_string(kMaxEntries) + " entries");
  }
  entries_.push_back(entry);
  return {};
}

Status DescriptorReader::ReadEntryFields(json::value value, const Place& place) {
  json::object object;
  if (value.get_object().get(object) != simdjson::SUCCESS) return BadJson();
  return ReadFields(object, [&](std::string_view name, json::value found) -> Status {
    if (name.empty() || name.size() > kMaxNameBytes) {
      return place.Wrong(Name(),
                         "a name must have 1 to " + std::to_string(kMaxNameBytes) + " bytes");
    }
    policy::Entry entry;
    entry.key = batch_->arena().Copy(name);
    if (Status status = ReadEntryValue(found, entry, place); !status.ok()) return status;
    return AddEntry(entry, place);
  });
}

Status DescriptorReader::ReadEntryValue(json::value value, policy::Entry& entry,
                                        const Place& place) {
  std::string_view found;
  const auto error = value.get_string().get(found);
  if (IsSyntaxError(error)) return BadJson();
  if (error != simdjson::SUCCESS || found.size() > kMaxValueBytes) {
    return place.Wrong(Name() + "." + std::string(entry.key),
                       "must be a string of at most " + std::to_string(kMaxValueBytes) + " bytes" +
                           (error != simdjson::SUCCESS ? ", not " + Shown(value) : ""));
  }
  entry.value = batch_->arena().Copy(found);
  return {};
}

Status DescriptorReader::ReadEntryList(json::value value, const Place& place) {
  json::array array;
  if (value.get_array().get(array) != simdjson::SUCCESS) return BadJson();
  for (auto element : array) {
    json::object object;
    if (const auto error = element.get_object().get(object)) {
      return IsSyntaxError(error) ? BadJson()
                                  : place.Wrong(Name(), "must contain objects with key and value");
    }
    policy::Entry entry;
    if (Status status = ReadEntry(object, entry, place); !status.ok()) return status;
    if (Status status = AddEntry(entry, place); !status.ok()) return status;
  }
  return {};
}

Status DescriptorReader::ReadEntry(json::object& object, policy::Entry& entry, const Place& place) {
  bool has_key = false;
  bool has_value = false;
  Status read = ReadFields(object, [&](std::string_view name, json::value value) -> Status {
    if ((name == "key" && std::exchange(has_key, true)) ||
        (name == "value" && std::exchange(has_value, true))) {
      return place.Wrong(Name(), std::string(name) + " is given twice");
    }
    if (name == "key") {
      return ReadText(value, Name() + ".key", kMaxNameBytes, entry.key, *batch_, place);
    }
    if (name == "value") return ReadEntryValue(value, entry, place);
    return place.Wrong(Name(), "must contain objects with key and value");
  });
  if (read.ok() && entry.key.empty()) return place.Wrong(Name(), "an entry has no key");
  return read;
}

}  // namespace weir::http
