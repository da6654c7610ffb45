#include "admin/shared/away.h"

namespace weir::policy::shared {

bool IsAway(const Error& error) {
  return error.code == Code::kUnavailable || error.code == Code::kDeadlineExceeded;
}

Error Away(const Error& why) {
  if (why.code == Code::kDeadlineExceeded) return why;
  return {Code::kUnavailable, "the policy database is down; nothing was changed: " + why.message};
}

Error NotBegun(const Error& why) {
  if (why.code != Code::kDeadlineExceeded) return Away(why);
  return {Code::kUnavailable, "the policy database does not answer; nothing was changed"};
}

}  // namespace weir::policy::shared
