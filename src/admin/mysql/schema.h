#pragma once

namespace weir::policy::mysql {

/// sql/policies_1.sql: the tables of policies.
extern const char* const kPolicies1;
/// sql/policies_2.sql: room for longer words.
extern const char* const kPolicies2;

}  // namespace weir::policy::mysql
