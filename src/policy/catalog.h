#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "policy/definition.h"
#include "policy/policy_set.h"
#include "policy/yaml.h"
#include "weir/clock.h"
#include "weir/result.h"

namespace weir::policy {

/// Where policies come together: those of files and those that the admin API stored are compiled
/// into one set and put in force. Files win: a stored policy whose name or key a file uses is set
/// aside until the file no longer does. What is stored may say one thing about a file's policy:
/// whether it is in shadow.
///
/// Thread-safe.
class Catalog {
 public:
  struct Status {
    std::uint64_t reloads = 0;            ///< of files, that were put in force
    std::uint64_t failed_reloads = 0;     ///< of files, that changed nothing
    Nanos last_reload = 0;                ///< when the last of either happened
    std::vector<yaml::Problem> problems;  ///< of the last reload; empty: it is in force
    std::size_t file_policies = 0;
    std::size_t stored_policies = 0;
    /// Names of stored policies that files replace, and overrides (domain/name) of policies that no
    /// file has.
    std::vector<std::string> set_aside;
  };

  /// `built_in` are in force beside those of the files, as if a file had them.
  explicit Catalog(CompileOptions options, std::vector<Definition> built_in = {});

  const LivePolicies& live() const noexcept { return live_; }
  PolicyIds& ids() noexcept { return ids_; }

  /// Reads the files and puts them in force in place of those before. If one of them is wrong
  /// nothing changes; what is wrong is returned and kept in status().
  std::vector<yaml::Problem> LoadFiles(const std::vector<std::string>& paths);

  /// Puts these stored policies and overrides in force in place of those before.
  weir::Status SetStored(std::vector<Definition> stored,
                         std::vector<ShadowOverride> overrides = {});

  /// kAlreadyExists if a file has a policy of this name or key; kInvalidArgument if it names a
  /// store that there is not.
  weir::Status CheckFree(const Definition& definition) const;
  /// kNotFound if no file has a policy of this domain and name.
  weir::Status CheckInFile(const ShadowOverride& over) const;

  Status status() const;

 private:
  void IndexFilesLocked();
  weir::Status PublishLocked();
  const Definition* FileRivalLocked(const Definition& definition) const;

  const CompileOptions options_;
  const std::vector<Definition> built_in_;
  PolicyIds ids_;
  LivePolicies live_;
  mutable std::mutex mutex_;
  std::vector<Definition> files_;
  std::vector<Definition> stored_;
  std::vector<ShadowOverride> overrides_;
  TextMap<std::size_t> file_names_;  // domain + name → files_
  TextMap<std::size_t> file_keys_;
  Status status_;
};

}  // namespace weir::policy
