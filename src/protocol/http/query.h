#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/query.h"
#include "weir/result.h"

namespace weir::http {

/// The parameters of a request's query, decoded, each given at most once. A value can only be had
/// from a query that was read without an error, so that one that does not decode is never taken
/// for one that is absent: `?version=3%` must not mean any version.
///
/// Thread safety: as any value.
class Query {
 public:
  using Names = std::initializer_list<std::string_view>;

  /// An error for a parameter that is none of `names`, since a misspelt one would silently not
  /// count, for one that is given twice, and for a value that DecodeQuery refuses.
  static Result<Query> Read(std::string_view query, Names names);
  /// Likewise, but ignores parameters that are none of `names`, whatever their values.
  static Result<Query> ReadKnown(std::string_view query, Names names);

  /// Nothing if it is absent.
  std::optional<std::string> Find(std::string_view name) const;
  /// A whole number within bounds; `otherwise` if it is absent.
  Result<std::int64_t> Number(std::string_view name, std::int64_t low, std::int64_t high,
                              std::int64_t otherwise) const;

 private:
  Status Add(std::string name, std::string_view value);

  std::vector<std::pair<std::string, std::string>> parameters_;
};

/// Whether an earlier pair of this query has the key of `pair`, which is one of it, as written.
bool IsRepeated(std::string_view query, const QueryReader::Pair& pair) noexcept;

/// The error for a parameter that is given twice: readers differ in which of the two they take.
Error GivenTwice(std::string_view parameter);

}  // namespace weir::http
