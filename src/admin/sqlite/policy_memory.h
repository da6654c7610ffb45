#pragma once

#include <memory>
#include <string>
#include <utility>

#include "admin/shared/shared_policy_store.h"
#include "drivers/sqlite/connection.h"

namespace weir::policy::sqlite {

/// A node's copy of the policies of a remote database, in an SQLite file of its own.
///
/// Not thread-safe.
class PolicyMemory final : public shared::Memory {
 public:
  /// `source` names the database, without secrets: a copy from another one is ignored.
  static Result<std::unique_ptr<PolicyMemory>> Open(const std::string& path, std::string source);

  Result<Known> Load() override;
  Status Save(const PolicyMap& policies, const std::string& mark) override;

 private:
  PolicyMemory(std::unique_ptr<weir::sqlite::Connection> connection, std::string source)
      : connection_(std::move(connection)), source_(std::move(source)) {}
  Status Write(const PolicyMap& policies, const std::string& mark);

  std::unique_ptr<weir::sqlite::Connection> connection_;
  const std::string source_;
};

}  // namespace weir::policy::sqlite
