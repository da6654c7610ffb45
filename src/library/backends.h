#pragma once

// The registry of databases that nodes can share. A new one is its folders and a line in
// backends.cc; stores, policies and tables are all opened by URL through here.

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "admin/policy_store.h"
#include "admin/shared/shared_policy_store.h"
#include "library/backend.h"
#include "policy/catalog.h"
#include "weir/result.h"

namespace weir::library {

/// The tables of one part of Weir in a database.
struct BackendTables {
  std::string_view name;  ///< limits, messages, policies
  Status (*migrate)(const std::string& url);
};

/// One kind of database. A plain value.
struct BackendKind {
  std::span<const std::string_view> schemes;  ///< of its URLs; the first is the usual one
  Result<std::unique_ptr<Backend>> (*open_store)(BackendOptions options,
                                                 store::guard::Guard& guard);
  /// Null: it stores no policies.
  Result<std::unique_ptr<policy::PolicyStore>> (*open_policies)(const std::string& url,
                                                                policy::Catalog& catalog,
                                                                policy::shared::Options options);
  std::span<const BackendTables> tables;  ///< empty: it needs none
  /// What is wrong with a URL, its options included, before anything is opened.
  Status (*check_url)(const std::string& url);
};

/// By the scheme of a URL; null if it is none of these.
const BackendKind* FindBackend(std::string_view url) noexcept;

}  // namespace weir::library
