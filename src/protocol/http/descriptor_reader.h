#pragma once

#include <simdjson.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/http/check_batch.h"
#include "protocol/http/check_json.h"
#include "weir/result.h"

namespace weir::http {

/// Copies a text into the batch's arena: the JSON parser reuses its memory for the next body.
Status ReadText(simdjson::ondemand::value value, std::string_view name, std::size_t longest,
                std::string_view& text, CheckBatch& batch, const Place& place);

/// Reads the "descriptors" of a check.
///
/// Not thread-safe: part of a CheckReader.
class DescriptorReader {
 public:
  /// What is read is stored in the arena of `batch`.
  Status Read(simdjson::ondemand::value value, CheckBatch& batch, const Place& place,
              std::span<const policy::Descriptor>& descriptors);

 private:
  std::string Name() const;
  Status ReadDescriptor(simdjson::ondemand::value value, const Place& place);
  Status AddEntry(const policy::Entry& entry, const Place& place);
  Status ReadEntryFields(simdjson::ondemand::value value, const Place& place);
  Status ReadEntryValue(simdjson::ondemand::value value, policy::Entry& entry, const Place& place);
  Status ReadEntryList(simdjson::ondemand::value value, const Place& place);
  Status ReadEntry(simdjson::ondemand::object& object, policy::Entry& entry, const Place& place);

  CheckBatch* batch_ = nullptr;
  std::vector<policy::Entry> entries_;
  std::vector<policy::Descriptor> descriptors_;
};

}  // namespace weir::http
