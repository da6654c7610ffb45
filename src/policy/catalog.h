#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "policy/definition.h"
#include "policy/policy_set.h"
#include "policy/yaml.h"
#include "weir/clock.h"
#include "weir/result.h"

namespace weir::policy {

/// Where policies come together: those from files, from a control plane and from the admin API
/// are compiled into one set and put in force. A control plane's are treated as if a file had
/// them. Files win: a stored policy whose name or key a file uses is set aside until the file
/// no longer does. Stored data can change one property of a file's policy: whether it is in
/// shadow.
///
/// Thread-safe.
class Catalog {
 public:
  struct Status {
    std::uint64_t reloads = 0;            ///< of files, put in force
    std::uint64_t failed_reloads = 0;     ///< of files, without effect
    Nanos last_reload = 0;                ///< when either last happened
    std::vector<yaml::Problem> problems;  ///< of the last reload; empty: it is in force
    std::size_t file_policies = 0;
    std::size_t stored_policies = 0;
    /// Names of stored policies that files replace, and overrides (domain/name) of policies that
    /// are in no file.
    std::vector<std::string> set_aside;
    /// Stored policies that this process cannot charge, each with the reason: see Policy::unable.
    std::vector<std::string> unable;
  };

  /// `built_in` are in force in addition to those of the files, as if a file had them.
  explicit Catalog(CompileOptions options, std::vector<Definition> built_in = {});

  const LivePolicies& live() const noexcept { return live_; }
  PolicyIds& ids() noexcept { return ids_; }

  /// Calls `run` with the set in force, and from now on with each set before it is published, after
  /// the callbacks added earlier. It must not call this object.
  void BeforePublishing(std::function<void(const PolicySet&)> run);

  /// Reads the files and puts them in force, replacing those before. If one of them is invalid, or
  /// none are left, nothing changes; the problems are returned and kept in status().
  std::vector<yaml::Problem> LoadFiles(const std::vector<std::string>& paths);

  /// Puts a control plane's policies in force, replacing those before. If they are invalid, nothing
  /// changes, as with LoadFiles; `problems` are those found when they were received.
  std::vector<yaml::Problem> SetManaged(std::vector<Definition> managed,
                                        std::vector<yaml::Problem> problems = {});

  /// Puts stored policies and overrides in force, replacing those before. Policies that this
  /// process cannot charge do not keep the others out of force: see Policy::unable.
  weir::Status SetStored(std::vector<Definition> stored,
                         std::vector<ShadowOverride> overrides = {});

  /// kAlreadyExists if a file has a policy with this name or key; kInvalidArgument if this process
  /// could not charge it, for instance because it names an unknown store.
  weir::Status CheckFree(const Definition& definition) const;
  /// kFailedPrecondition if a file has a policy with this name, or with this domain/name.
  weir::Status CheckNotInFile(std::string_view name) const;
  /// kNotFound if no file has a policy with this domain and name.
  weir::Status CheckInFile(const ShadowOverride& over) const;

  Status status() const;

 private:
  bool HasRead() const;
  std::vector<yaml::Problem> Replace(std::vector<Definition>& part, std::vector<Definition> next,
                                     std::vector<yaml::Problem> problems);
  void IndexFilesLocked();
  weir::Status PublishLocked();
  const Definition* FileRivalLocked(const Definition& definition) const;

  const CompileOptions options_;
  const CompileOptions tolerant_;  // for all together, once those of files are known to be valid
  const std::vector<Definition> built_in_;
  PolicyIds ids_;
  LivePolicies live_;
  mutable std::mutex mutex_;
  std::vector<Definition> read_;     // from files, and the built-in ones
  std::vector<Definition> managed_;  // from a control plane
  std::vector<Definition> files_;    // both
  std::vector<Definition> stored_;
  std::vector<ShadowOverride> overrides_;
  TextMap<std::size_t> file_names_;  // domain + name → files_
  TextMap<std::size_t> file_keys_;
  Status status_;
  std::vector<std::function<void(const PolicySet&)>> before_publishing_;
};

}  // namespace weir::policy
