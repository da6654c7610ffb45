#include "policy/policy_apply.h"

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <utility>
#include <vector>

#include "console.h"
#include "policy/policy_compare.h"
#include "policy/policy_documents.h"
#include "policy/policy_words.h"

namespace weir::app {
namespace {

constexpr std::size_t kMostNamed = 20;

std::string PathTo(const Compared& one) {
  return "/admin/policies/" + UrlEscaped(one.document.policy.key);
}

/// The policies of a file beside those of the service; `code` is not kExitOk if they could not be
/// compared, which has been said.
struct Comparison {
  int code = kExitOk;
  std::vector<Compared> all = {};
};

Comparison Compare(const ApplyWords& words) {
  const Result<std::string> end = EndValue(words.expires);
  if (!end.ok()) return {Fail(end.error())};
  std::vector<policy::yaml::Problem> problems;
  std::vector<PolicyDocument> documents = ReadPolicyDocuments(words.file, *end, problems);
  for (const policy::yaml::Problem& problem : problems) {
    std::cerr << "weir: " << Shown(problem.ToString()) << '\n';
  }
  if (!problems.empty()) return {kExitUsage};
  Comparison comparison;
  for (PolicyDocument& document : documents) {
    for (const std::string& warning : document.warnings) {
      std::cerr << "weir: warning: " << Shown(document.policy.key, 200) << ": " << warning << '\n';
    }
    Result<ServiceReply> now =
        words.remote.Exchange("GET", "/admin/policies/" + UrlEscaped(document.policy.key));
    if (!now.ok()) return {Fail(now.error())};
    if (!now->ok() && now->status != 404) return {FailRefused(*now)};
    Result<Compared> one = CompareWith(std::move(document), *now);
    if (!one.ok()) return {Fail(one.error())};
    comparison.all.push_back(std::move(*one));
  }
  return comparison;
}

/// Of every policy alike: who asks, or how the service is.
bool IsOfAll(const ServiceReply& refusal) {
  return refusal.status == 401 || refusal.status == 403 || refusal.status >= 429;
}

/// Asks the service whether it would take what is different, which changes nothing. Says what it
/// would not take; `conflicts`: also of policies that its files define. Gives the warnings if
/// `warn`. Returns the exit code.
int AskAhead(const ApplyWords& words, const std::vector<Compared>& all, bool conflicts, bool warn) {
  int code = kExitOk;
  std::size_t refused = 0;
  for (const Compared& one : all) {
    if (one.same() || (!one.defined_in.empty() && !conflicts)) continue;
    const PolicyDocument& document = one.document;
    const auto reply = words.remote.Exchange("POST", PathTo(one) + "/check", document.json);
    if (!reply.ok()) return Fail(reply.error());
    if (reply->ok()) {
      if (warn) PrintWarnings(document.policy.key, *reply, document.warnings);
      continue;
    }
    if (IsOfAll(*reply)) return FailRefused(*reply);
    if (++refused > kMostNamed) continue;
    const std::string place = document.place.empty() ? "" : document.place + ": ";
    code = FailRefused(*reply, place + document.policy.key);
  }
  if (refused > kMostNamed) {
    std::cerr << "weir: and " << Counted(static_cast<std::int64_t>(refused - kMostNamed), "other")
              << '\n';
  }
  return code;
}

int ShowDifference(const ApplyWords& words, bool conflicts) {
  const Comparison comparison = Compare(words);
  if (comparison.code != kExitOk) return comparison.code;
  bool different = false;
  for (const Compared& one : comparison.all) {
    different = different || !one.same();
    Print(one, words.remote.json);
  }
  const int ahead = AskAhead(words, comparison.all, conflicts, true);
  if (ahead != kExitOk) return ahead;
  return different ? kExitNo : kExitOk;
}

/// Whether a change that failed was certainly not made. Weir answers 504 if it does not know; a
/// proxy in between answers 502 if it has lost the service.
bool IsCertain(const Result<ServiceReply>& reply) {
  if (!reply.ok()) return reply.error().code != Code::kDeadlineExceeded;
  return reply->status != 504 && reply->status != 502;
}

/// Says what has been done when a change has failed although all would have been taken before: the
/// keys of all changes, in order, and how many of them were made.
void TellRest(const std::vector<std::string>& keys, std::size_t made, bool is_known) {
  if (keys.size() < 2) return;
  std::cerr << "weir: applied " << made << " of " << keys.size() << " changes";
  if (!is_known) std::cerr << "; unknown: " << Shown(keys[made++], 200);
  const std::size_t end = std::min(keys.size(), made + kMostNamed);
  for (std::size_t i = made; i < end; ++i) {
    std::cerr << (i == made ? "; not applied: " : ", ") << Shown(keys[i], 200);
  }
  if (end < keys.size()) std::cerr << " and " << keys.size() - end << " more";
  std::cerr << '\n';
}

}  // namespace

int DiffFile(const ApplyWords& words) { return ShowDifference(words, false); }

int ApplyFile(const ApplyWords& words, bool dry_run) {
  if (dry_run) return ShowDifference(words, true);
  const Comparison comparison = Compare(words);
  if (comparison.code != kExitOk) return comparison.code;
  if (const int ahead = AskAhead(words, comparison.all, true, false); ahead != kExitOk) {
    std::cerr << "weir: nothing was applied\n";
    return ahead;
  }
  std::vector<std::string> changes;
  for (const Compared& one : comparison.all) {
    if (!one.same()) changes.push_back(one.document.policy.key);
  }
  std::size_t made = 0;
  for (const Compared& one : comparison.all) {
    if (!one.same()) {
      const Result<ServiceReply> reply =
          words.remote.Exchange(one.exists ? "PUT" : "POST",
                                one.exists ? PathTo(one) : "/admin/policies", one.document.json);
      if (!reply.ok() || !reply->ok()) {
        const int code = reply.ok() ? FailRefused(*reply) : Fail(reply.error());
        TellRest(changes, made, IsCertain(reply));
        return code;
      }
      ++made;
      PrintWarnings(one.document.policy.key, *reply, one.document.warnings);
    }
    Print(one, words.remote.json);
  }
  return kExitOk;
}

}  // namespace weir::app
