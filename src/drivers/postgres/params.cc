#include "drivers/postgres/params.h"

#include <cstddef>
#include <cstring>
#include <utility>

namespace weir::postgres {
namespace {

// Object ids of built-in types; they are fixed in PostgreSQL's catalogue.
constexpr unsigned kBool = 16;
constexpr unsigned kBytea = 17;
constexpr unsigned kInt8 = 20;
constexpr unsigned kText = 25;
constexpr unsigned kByteaArray = 1001;
constexpr unsigned kTextArray = 1009;
constexpr unsigned kInt8Array = 1016;

template <typename T>
void AppendBigEndian(std::string& out, T value) {
  for (int shift = static_cast<int>(sizeof(T)) * 8 - 8; shift >= 0; shift -= 8) {
    out.push_back(static_cast<char>(value >> shift));
  }
}

// One dimension, numbered from 1. The array format is PostgreSQL's array_recv.
std::string ArrayHead(std::size_t count, unsigned element_type, bool has_null) {
  std::string out;
  AppendBigEndian<std::int32_t>(out, count == 0 ? 0 : 1);
  AppendBigEndian<std::int32_t>(out, has_null ? 1 : 0);
  AppendBigEndian<std::uint32_t>(out, element_type);
  if (count > 0) {
    AppendBigEndian<std::int32_t>(out, static_cast<std::int32_t>(count));
    AppendBigEndian<std::int32_t>(out, 1);
  }
  return out;
}

std::string ViewArray(std::span<const std::string_view> values, unsigned element_type) {
  std::string out = ArrayHead(values.size(), element_type, false);
  for (std::string_view value : values) {
    AppendBigEndian<std::int32_t>(out, static_cast<std::int32_t>(value.size()));
    out.append(value);
  }
  return out;
}

}  // namespace

void Params::Add(unsigned type, std::string bytes) {
  values_.push_back({std::move(bytes), type, false});
}

Params& Params::Text(std::string_view value) {
  Add(kText, std::string(value));
  return *this;
}

Params& Params::Int(std::int64_t value) {
  std::string bytes;
  AppendBigEndian(bytes, value);
  Add(kInt8, std::move(bytes));
  return *this;
}

Params& Params::Bool(bool value) {
  Add(kBool, std::string(1, value ? '\1' : '\0'));
  return *this;
}

Params& Params::Bytes(std::string_view value) {
  Add(kBytea, std::string(value));
  return *this;
}

Params& Params::Null() {
  values_.push_back({{}, 0, true});
  return *this;
}

Params& Params::IntArray(std::span<const std::int64_t> values) {
  std::string out = ArrayHead(values.size(), kInt8, false);
  out.reserve(out.size() + values.size() * 12);
  for (std::int64_t value : values) {
    AppendBigEndian<std::int32_t>(out, sizeof(value));
    AppendBigEndian(out, value);
  }
  Add(kInt8Array, std::move(out));
  return *this;
}

Params& Params::TextArray(std::span<const std::string_view> values) {
  Add(kTextArray, ViewArray(values, kText));
  return *this;
}

Params& Params::TextArray(std::span<const std::optional<std::string_view>> values) {
  bool has_null = false;
  for (const auto& value : values) has_null = has_null || !value.has_value();
  std::string out = ArrayHead(values.size(), kText, has_null);
  for (const auto& value : values) {
    AppendBigEndian<std::int32_t>(out, value ? static_cast<std::int32_t>(value->size()) : -1);
    if (value) out.append(*value);
  }
  Add(kTextArray, std::move(out));
  return *this;
}

Params& Params::BytesArray(std::span<const std::string_view> values) {
  Add(kByteaArray, ViewArray(values, kBytea));
  return *this;
}

}  // namespace weir::postgres
