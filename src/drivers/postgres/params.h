#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::postgres {

/// The parameters $1, $2, … of one statement, in PostgreSQL's binary format (text is text). Types
/// are sent with them, so the server never has to guess.
///
/// Not thread-safe, like any value.
class Params {
 public:
  Params& Text(std::string_view value);
  Params& Int(std::int64_t value);  ///< bigint
  Params& Bool(bool value);
  Params& Bytes(std::string_view value);  ///< bytea
  Params& Null();                         ///< of unspecified type
  Params& IntArray(std::span<const std::int64_t> values);
  Params& TextArray(std::span<const std::string_view> values);
  /// An element that is nullopt is NULL.
  Params& TextArray(std::span<const std::optional<std::string_view>> values);
  Params& BytesArray(std::span<const std::string_view> values);

  std::size_t size() const noexcept { return values_.size(); }

 private:
  friend class Connection;
  struct Value {
    std::string bytes;
    unsigned type = 0;
    bool null = false;
  };
  void Add(unsigned type, std::string bytes);

  std::vector<Value> values_;
};

}  // namespace weir::postgres
