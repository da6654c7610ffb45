#pragma once

namespace weir::policy::mysql {

/// sql/policies_1.sql: the tables of policies.
extern const char* const kPolicies1;

}  // namespace weir::policy::mysql
