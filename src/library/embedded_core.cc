// A Limiter in this process: the parts of `weir serve`, without its protocols.

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "library/backends.h"
#include "library/deciders.h"
#include "library/store_routes.h"
#include "limiter/permits.h"
#include "policy/catalog.h"
#include "policy/file_watcher.h"

namespace weir::library {
namespace {

using limiter::Check;

policy::CompileOptions Compiling(const library::EmbeddedSettings& settings) {
  policy::CompileOptions options = settings.compile;
  options.leasing = !library::OnlyMemory(settings.places);
  return options;
}

/// Thread safety: as Limiter.
class EmbeddedCore final : public Limiter::Core {
 public:
  EmbeddedCore(LimiterOptions options, EmbeddedSettings settings)
      : options_(std::move(options)),
        settings_(std::move(settings)),
        catalog_(Compiling(settings_)),
        shared_(catalog_.live(), catalog_.ids(), {.share = settings_.compile.local_share}) {
    shared_.deny_unmatched = settings_.places.deny_unmatched;
    shared_.observe.refusals_per_second = 0;  // a library does not write to its program's log
  }

  ~EmbeddedCore() override {
    watcher_.reset();
    if (policy_store_) policy_store_->Close();
  }

  Status Open() {
    read_ = policy::FileWatcher::Look(options_.policies);
    if (const auto problems = catalog_.LoadFiles(options_.policies); !problems.empty()) {
      return Error{Code::kInvalidArgument, policy::yaml::ToString(problems)};
    }
    if (Status opened = OpenDecider(); !opened.ok()) return opened;
    if (Status opened = OpenPolicyStore(); !opened.ok()) return opened;
    return Watch();
  }

  Result<Told> Ask(const Question& question) override;

  LimiterPolicies policies() const override {
    const policy::Catalog::Status status = catalog_.status();
    return {.from_files = status.file_policies,
            .stored = status.stored_policies,
            .reloads = status.reloads,
            .problem = policy::yaml::ToString(status.problems)};
  }

  Status health() const override { return decider_->health(); }

 private:
  Status OpenDecider() {
    const auto is_here = [](const StoreMember& member) { return member.url == "memory:"; };
    if (std::ranges::all_of(MembersOf(settings_.places), is_here)) {
      decider_ = MemoryDecider(shared_, options_.max_keys);
      return {};
    }
    auto decider = DistantDecider(shared_, catalog_, options_, settings_);
    if (!decider.ok()) return decider.error();
    decider_ = std::move(*decider);
    return {};
  }

  Status OpenPolicyStore() {
    std::string url = options_.policy_store;
    const std::string& usual = settings_.places.store;
    if (url == "auto") {
      const BackendKind* const found = FindBackend(usual);
      url = found == nullptr || found->open_policies == nullptr ? "" : usual;
    }
    if (url.empty()) return {};
    const BackendKind* const kind = FindBackend(url);
    if (kind == nullptr || kind->open_policies == nullptr) {
      return Error{Code::kInvalidArgument, "policy_store: unsupported URL scheme"};
    }
    policy::shared::Options options;
    options.migrate = options_.migrate;
    options.required = options_.connect_timeout.count() > 0;
    options.patience = std::max(2 * options_.timeout, std::chrono::milliseconds(1000));
    options.report = [this](std::string_view what, const std::string& problem) {
      Report(what, problem);
    };
    auto store = kind->open_policies(url, catalog_, std::move(options));
    if (!store.ok()) return Error{store.error().code, "policy_store: " + store.error().message};
    policy_store_ = std::move(*store);
    return {};
  }

  Status Watch() {
    if (options_.policies.empty()) return {};
    policy::FileWatcher::Options options;
    options.paths = options_.policies;
    options.read = std::move(read_);
    options.on_change = [this] {
      const auto problems = catalog_.LoadFiles(options_.policies);
      if (problems.empty()) return Report("policies reloaded", "");
      Report("policies not reloaded; the current ones stay in force",
             policy::yaml::ToString(problems));
    };
    auto watcher = policy::FileWatcher::Start(std::move(options));
    if (!watcher.ok()) return watcher.error();
    watcher_ = std::move(*watcher);
    return {};
  }

  void Report(std::string_view what, std::string_view problem) const {
    if (options_.report) options_.report(what, problem);
  }

  const LimiterOptions options_;
  EmbeddedSettings settings_;
  policy::Catalog catalog_;
  limiter::Shared shared_;
  std::unique_ptr<Decider> decider_;
  std::unique_ptr<policy::PolicyStore> policy_store_;
  std::vector<policy::FileWatcher::Stamp> read_;  // until they are watched
  std::unique_ptr<policy::FileWatcher> watcher_;
};

Limiter::Core::Told ToldOf(const Check& check) {
  Limiter::Core::Told told;
  told.answer.decision = check.decision;
  told.answer.policy = check.policy;
  told.answer.degraded = check.degraded;
  told.applied = check.applied;
  told.reservation = check.reservation;
  const bool holds = check.op == store::Op::kCharge && check.decision.lease != 0;
  if (holds) limiter::AppendPermits(told.answer.leases, check);
  return told;
}

Result<Limiter::Core::Told> EmbeddedCore::Ask(const Question& question) {
  const LimitRequest& request = question.request;
  std::vector<policy::Entry> entries;
  entries.reserve(request.entries.size());
  for (const LimitEntry& entry : request.entries) entries.push_back({entry.key, entry.value});
  const policy::Descriptor descriptor(entries);
  Check check;
  check.op = question.op;
  check.reserve = question.reserve;
  check.settles = question.settles;
  check.request.key = request.key;
  check.request.domain = request.domain;
  check.request.cost = request.cost;
  if (request.key.empty()) check.request.descriptors = {&descriptor, 1};
  if (question.op == store::Op::kRelease) {
    if (Status read = limiter::ParsePermits(question.leases, check.permits); !read.ok()) {
      return Error{read.error().code, "leases: " + read.error().message};
    }
  }
  std::optional<Result<Told>> told;
  decider_->Decide(check, [&told](Check& decided) {
    if (decided.status.ok()) {
      told = ToldOf(decided);
    } else {
      told = decided.status.error();
    }
  });
  return std::move(*told);
}

}  // namespace

Result<std::unique_ptr<Limiter::Core>> OpenEmbedded(LimiterOptions options,
                                                    EmbeddedSettings settings) {
  auto core = std::make_unique<EmbeddedCore>(std::move(options), std::move(settings));
  if (Status opened = core->Open(); !opened.ok()) return opened.error();
  return std::unique_ptr<Limiter::Core>(std::move(core));
}

}  // namespace weir::library
