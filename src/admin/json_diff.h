#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weir::admin {

/// One field that differs between two objects; empty where it is missing, otherwise JSON.
struct FieldDifference {
  std::string field;
  std::string before;
  std::string after;
};

/// What differs between two policies as JSON objects, except their IDs and versions: the fields of
/// `before` in their order, then those that only `after` has. An empty text has no fields.
std::vector<FieldDifference> Differences(std::string_view before, std::string_view after);

}  // namespace weir::admin
