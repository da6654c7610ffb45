#include "notify/message.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace weir::notify {
namespace {

constexpr std::array<std::string_view, 5> kStateNames = {"QUEUED", "FAILED", "SENT", "DEAD",
                                                         "DROPPED"};

}  // namespace

std::string_view NameOf(MessageState state) noexcept {
  return kStateNames.at(static_cast<std::size_t>(state));
}

std::optional<MessageState> ParseMessageState(std::string_view name) noexcept {
  const auto same = [name](std::string_view known) {
    return std::equal(name.begin(), name.end(), known.begin(), known.end(), [](char a, char b) {
      return std::toupper(static_cast<unsigned char>(a)) == b;
    });
  };
  const auto found = std::find_if(kStateNames.begin(), kStateNames.end(), same);
  if (found == kStateNames.end()) return std::nullopt;
  return static_cast<MessageState>(found - kStateNames.begin());
}

}  // namespace weir::notify
