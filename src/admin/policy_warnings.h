#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "admin/policy_store.h"
#include "weir/result.h"

namespace weir::http {

/// Which fields of a policy were given, by the API's name for them, and under which names.
using GivenFields = std::map<std::string, std::string, std::less<>>;

/// An error for a bucket with a window but no rate: it is meant as a window, and would allow many
/// times its limit.
Status CheckSpan(const policy::StoredPolicy& policy, const GivenFields& given);

/// What the author of the policy should know: numbers that its type does not use, numbers that are
/// missing, and why the policy can apply to no request.
std::vector<std::string> PolicyWarnings(const policy::StoredPolicy& policy,
                                        const GivenFields& given);

}  // namespace weir::http
