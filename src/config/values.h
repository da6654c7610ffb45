#pragma once

// Reads the values of settings. An error is for a person and repeats no secret.

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

/// The value of a setting: one text, or several if it is a list.
using Texts = std::span<const std::string>;

Error Expected(std::string_view expected, std::string_view got);
/// The same, with the name of `names` that was probably meant.
Error Expected(std::string_view expected, std::string_view got,
               std::span<const std::string_view> names);
/// "mongodb://…": the text after the scheme may be a secret.
std::string Beginning(std::string_view url);

Result<std::int64_t> ReadWhole(std::string_view text, std::int64_t least, std::int64_t most);
/// 64k, 1M, 2G, or plain bytes.
Result<std::int64_t> ReadBytes(std::string_view text, std::int64_t least, std::int64_t most);
/// `zero_allowed`: "off" and 0 are zero.
Result<std::chrono::milliseconds> ReadTime(std::string_view text, bool zero_allowed);
Result<bool> ReadSwitch(std::string_view text);
/// The index of the text in `names`, from 0: for enums in the same order.
Result<std::size_t> ReadChoice(std::string_view text,
                               std::initializer_list<std::string_view> names);

template <typename T, typename V>
Status Set(T& target, const Result<V>& value) {
  if (!value.ok()) return value.error();
  target = static_cast<T>(*value);
  return {};
}

/// Errors repeat only the scheme: the text may contain a password.
Status SetUrl(std::string& target, Texts texts, std::initializer_list<std::string_view> schemes);
/// The URL of a store for limits, likewise.
Status SetStoreUrl(std::string& target, const std::string& text);
Status SetAddress(Address& target, Texts texts);
/// Header fields for a server, each "name: value". They are likely secrets, so errors do not repeat
/// them.
Status SetHeaderFields(std::vector<std::string>& target, Texts texts);
/// 1 to 64 letters, digits, - and _.
bool IsPlainName(std::string_view text);
/// The name of a header field.
Status SetFieldName(std::string& target, const std::string& text);

}  // namespace weir::config
