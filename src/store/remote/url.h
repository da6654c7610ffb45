#pragma once

#include <string_view>

#include "drivers/redis/url.h"
#include "weir/result.h"

namespace weir::store::remote {

/// Reads `weir://[:key@]host[:port]`, and `weirs://…` for TLS with the options of rediss://. The
/// default port is 6380. Errors never repeat the key.
Result<weir::redis::Address> ParseUrl(std::string_view text);

}  // namespace weir::store::remote
