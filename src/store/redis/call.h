#pragma once

#include <optional>
#include <span>

#include "drivers/redis/command.h"
#include "drivers/redis/reply.h"
#include "store/redis/names.h"
#include "store/store.h"
#include "weir/clock.h"

namespace weir::store::redis {

/// The most charges one application may have, and the most a call takes unless it has only one
/// application.
inline constexpr std::size_t kMaxCharges = 1000;
inline constexpr std::size_t kMaxChargesOfCall = 256;

/// The arguments of one call of the script: the number of keys, the keys, and what to do with them.
/// `reference` is near the server's time. `now`, if given, is used instead of the server's clock.
weir::redis::Command Encode(const Names& names, std::span<Application* const> applications,
                            Nanos reference, std::optional<Nanos> now = std::nullopt);

/// The script's answer, stored in the applications, and the server's time. Only the time is filled
/// if the reference was too far from it and nothing was done. Nothing is filled if a SingleScript
/// has declined: it did nothing, and the call must go to ApplyScript.
struct Decoded {
  Status status;
  Nanos now = 0;
  bool stale = false;
  bool declined = false;
};
Decoded Decode(const weir::redis::Reply& reply, std::span<Application* const> applications);
/// The same for a SingleScript, whose times count from `reference`.
Decoded DecodeSingle(const weir::redis::Reply& reply, Application& application, Nanos reference);

}  // namespace weir::store::redis
