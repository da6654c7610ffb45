#pragma once

#include <string>

#include "weir/result.h"

namespace weir::postgres {

/// Connects once, within a second. kUnauthenticated if the server does not admit this user or not
/// with this password, kPermissionDenied if it has no such database. No error if it does not
/// answer: it may come up. Nor with several hosts: another one than the first may admit us.
///
/// Blocks. Thread-safe.
Status CheckLogin(const std::string& url);

}  // namespace weir::postgres
