#include "policy/catalog.h"

#include <utility>

#include "policy/domains.h"
#include "policy/policy_file.h"
#include "policy/set_problems.h"

namespace weir::policy {
namespace {

/// For a definition or an override.
template <typename Named>
std::string Identity(const Named& named) {
  return std::to_string(named.domain.size()) + ':' + named.domain + named.name;
}

std::shared_ptr<const PolicySet> CompileEmpty(const CompileOptions& options, PolicyIds& ids) {
  return *PolicySet::Compile({}, options, ids);
}

/// The domain that all of these are in; empty if there are none or several.
std::string OnlyDomain(const std::vector<Definition>& definitions) {
  std::string only;
  for (const Definition& definition : definitions) {
    if (!definition.has_match || definition.domain == kMessageDomain) continue;
    if (!only.empty() && only != definition.domain) return {};
    only = definition.domain;
  }
  return only;
}

CompileOptions Tolerant(CompileOptions options) {
  options.tolerant = true;
  return options;
}

std::string DefinedThere(std::string_view name, const Definition& definition) {
  return "policy '" + std::string(name) + "' is defined in " + definition.source +
         "; change it there";
}

}  // namespace

Catalog::Catalog(CompileOptions options, std::vector<Definition> built_in)
    : options_(std::move(options)),
      tolerant_(Tolerant(options_)),
      built_in_(std::move(built_in)),
      live_(CompileEmpty(options_, ids_)) {}

std::vector<yaml::Problem> Catalog::LoadFiles(const std::vector<std::string>& paths) {
  std::vector<yaml::Problem> problems;
  std::vector<Definition> read = built_in_;
  const std::vector<std::string> files = PolicyFiles(paths, problems);
  // As when a folder's volume is not mounted, or while its files are being replaced.
  if (files.empty() && !paths.empty() && problems.empty() && HasRead()) {
    problems.push_back(
        {paths.front(),
         {},
         "has no policy files any more; write one with \"policies: []\" to remove all policies"});
  }
  for (const std::string& path : files) {
    std::vector<Definition> some = LoadPolicyFile(path, problems, options_.lenient);
    read.insert(read.end(), std::make_move_iterator(some.begin()),
                std::make_move_iterator(some.end()));
  }
  return Replace(read_, std::move(read), std::move(problems));
}

bool Catalog::HasRead() const {
  const std::lock_guard lock(mutex_);
  return read_.size() > built_in_.size();
}

std::vector<yaml::Problem> Catalog::SetManaged(std::vector<Definition> managed,
                                               std::vector<yaml::Problem> problems) {
  return Replace(managed_, std::move(managed), std::move(problems));
}

std::vector<yaml::Problem> Catalog::Replace(std::vector<Definition>& part,
                                            std::vector<Definition> next,
                                            std::vector<yaml::Problem> problems) {
  const std::lock_guard lock(mutex_);
  const bool first = status_.last_reload == 0;  // at startup they are read, not reloaded
  status_.last_reload = SystemClock::Get().Now();
  if (problems.empty()) {
    std::swap(part, next);
    IndexFilesLocked();
    // Alone first, so that errors in the files are not blamed on stored policies.
    problems = SetProblems(files_, options_);
    if (problems.empty()) {
      weir::Status published = PublishLocked();
      if (!published.ok()) problems.push_back({"policies", {}, published.error().message});
    }
    if (!problems.empty()) {
      std::swap(part, next);
      IndexFilesLocked();
    }
  }
  if (!problems.empty()) {
    ++status_.failed_reloads;
  } else if (!first) {
    ++status_.reloads;
  }
  status_.problems = problems;
  return problems;
}

void Catalog::IndexFilesLocked() {
  files_ = read_;
  files_.insert(files_.end(), managed_.begin(), managed_.end());
  file_names_.clear();
  file_keys_.clear();
  for (std::size_t i = 0; i < files_.size(); ++i) {
    file_names_.emplace(Identity(files_[i]), i);
    if (!files_[i].key.empty()) file_keys_.emplace(files_[i].key, i);
  }
}

weir::Status Catalog::SetStored(std::vector<Definition> stored,
                                std::vector<ShadowOverride> overrides) {
  const std::lock_guard lock(mutex_);
  std::swap(stored_, stored);
  std::swap(overrides_, overrides);
  weir::Status published = PublishLocked();
  if (!published.ok()) {
    std::swap(stored_, stored);
    std::swap(overrides_, overrides);
  }
  return published;
}

weir::Status Catalog::CheckFree(const Definition& definition) const {
  if (weir::Status can = CheckChargeable(definition, options_); !can.ok()) return can;
  const std::lock_guard lock(mutex_);
  const Definition* rival = FileRivalLocked(definition);
  if (rival == nullptr) return {};
  return Error{Code::kAlreadyExists, DefinedThere(definition.name, *rival)};
}

weir::Status Catalog::CheckNotInFile(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  for (const Definition& file : files_) {
    if (file.name != name && file.domain + "/" + file.name != name) continue;
    return Error{Code::kFailedPrecondition, DefinedThere(name, file)};
  }
  return {};
}

weir::Status Catalog::CheckInFile(const ShadowOverride& over) const {
  const std::lock_guard lock(mutex_);
  if (file_names_.contains(Identity(over))) return {};
  return Error{Code::kNotFound, "no policy file has a policy '" + over.name + "' in domain '" +
                                    over.domain + "': only those can be overridden"};
}

void Catalog::BeforePublishing(std::function<void(const PolicySet&)> run) {
  const std::lock_guard lock(mutex_);
  before_publishing_.push_back(std::move(run));
  before_publishing_.back()(*live_.Current());
}

Catalog::Status Catalog::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

const Definition* Catalog::FileRivalLocked(const Definition& definition) const {
  const auto name = file_names_.find(Identity(definition));
  if (name != file_names_.end()) return &files_[name->second];
  if (definition.key.empty()) return nullptr;
  const auto key = file_keys_.find(definition.key);
  return key == file_keys_.end() ? nullptr : &files_[key->second];
}

weir::Status Catalog::PublishLocked() {
  std::vector<Definition> all = files_;
  std::vector<std::string> set_aside;
  for (const Definition& definition : stored_) {
    if (FileRivalLocked(definition) == nullptr) {
      all.push_back(definition);
    } else {
      set_aside.push_back(definition.name);
    }
  }
  for (const ShadowOverride& over : overrides_) {
    const auto found = file_names_.find(Identity(over));
    if (found == file_names_.end()) {
      set_aside.push_back(over.domain + "/" + over.name);
      continue;
    }
    Definition& definition = all[found->second];
    definition.shadow_in_file = definition.shadow;
    definition.shadow = over.shadow;
  }
  CompileOptions options = tolerant_;
  options.file_domain = OnlyDomain(files_);
  Result<std::shared_ptr<const PolicySet>> compiled =
      PolicySet::Compile(std::move(all), options, ids_);
  if (!compiled.ok()) return compiled.error();
  std::vector<std::string> unable;
  for (const Policy& policy : (*compiled)->policies()) {
    if (!policy.unable.empty()) unable.push_back(policy.unable);
  }
  for (const auto& run : before_publishing_) run(**compiled);
  live_.Publish(std::move(*compiled));
  status_.file_policies = files_.size();
  status_.stored_policies = stored_.size() + overrides_.size();
  status_.set_aside = std::move(set_aside);
  status_.unable = std::move(unable);
  return {};
}

}  // namespace weir::policy
