#pragma once

// How values of settings are read. An error is for a person and repeats no secret.

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "weir/result.h"

namespace weir::config {

/// What a setting is given: one text, or several where it takes a list.
using Texts = std::span<const std::string>;

Error Expected(std::string_view expected, std::string_view got);
/// "mongodb://…": what stands behind the scheme may be a secret.
std::string Beginning(std::string_view url);

Result<std::int64_t> ReadWhole(std::string_view text, std::int64_t least, std::int64_t most);
/// 64k, 1M, 2G, or plain bytes.
Result<std::int64_t> ReadBytes(std::string_view text, std::int64_t least, std::int64_t most);
/// `zero_allowed`: "off" and 0 are zero.
Result<std::chrono::milliseconds> ReadTime(std::string_view text, bool zero_allowed);
Result<bool> ReadSwitch(std::string_view text);
/// Which of `names` it is, counted from 0: for enums that have their order.
Result<std::size_t> ReadChoice(std::string_view text,
                               std::initializer_list<std::string_view> names);

template <typename T, typename V>
Status Set(T& target, const Result<V>& value) {
  if (!value.ok()) return value.error();
  target = static_cast<T>(*value);
  return {};
}

/// Only the scheme is ever repeated: the text may hold a password.
Status SetUrl(std::string& target, Texts texts, std::initializer_list<std::string_view> schemes);
/// A URL of a store for limits, likewise.
Status SetStoreUrl(std::string& target, const std::string& text);
Status SetAddress(Address& target, Texts texts);
/// Header fields for a server, each "name: value". They are likely secrets, so no error repeats
/// them.
Status SetHeaderFields(std::vector<std::string>& target, Texts texts);
/// 1 to 64 letters, digits, - and _.
bool IsPlainName(std::string_view text);
/// The name of a header field.
Status SetFieldName(std::string& target, const std::string& text);

}  // namespace weir::config
