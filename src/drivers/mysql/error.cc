#include "drivers/mysql/error.h"

namespace weir::mysql {

Code CodeOf(unsigned number) noexcept {
  if (IsLost(number) || IsRetryable(number)) return Code::kUnavailable;
  switch (number) {
    case 1040:  // too many connections
    case 1041:  // out of memory
    case 1053:  // shutting down
    case 1158:  // network errors, as the server saw them
    case 1159:
    case 1160:
    case 1161:
    case 1203:  // too many connections of this user
    case 1205:  // lock wait timeout
    case 1290:  // read only
    case 1317:  // interrupted
    case 1836:  // read only
    case 1927:  // killed
    case 3032:  // offline mode
    case 3169:  // killed
    case 4031:  // idle for too long
      return Code::kUnavailable;
    case 1969:  // max_statement_time
    case 3024:  // max_execution_time
      return Code::kDeadlineExceeded;
    case 1044:
    case 1045:
    case 1049:  // no such database
    case 1142:
    case 1227:
    case 1698:
    case 1820:  // the password has to be changed
    case 3118:  // the account is locked
    case 3159:  // the server requires TLS
      return Code::kPermissionDenied;
    case 1153:  // larger than max_allowed_packet
      return Code::kResourceExhausted;
    default:
      return Code::kInternal;
  }
}

bool IsRetryable(unsigned number) noexcept { return number == 1213 || number == 1020; }

bool EndsSession(unsigned number) noexcept {
  switch (number) {
    case 1053:
    case 1290:
    case 1836:
    case 1927:
    case 3169:
    case 4031:
      return true;
    default:
      return false;
  }
}

bool IsLost(unsigned number) noexcept { return number >= 2000 && number < 3000; }

}  // namespace weir::mysql
