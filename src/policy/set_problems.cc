#include "policy/set_problems.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/number.h"
#include "base/text_map.h"
#include "policy/chain_tree.h"

namespace weir::policy {
namespace {

constexpr std::size_t kMostProblems = 100;

/// Takes ":12" off the end of a place; nothing if that is not how it ends.
std::optional<int> TakeNumber(std::string& place) {
  const std::size_t colon = place.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  const auto number = ParseNumber<int>(std::string_view(place).substr(colon + 1));
  if (number) place.resize(colon);
  return number;
}

/// Names, keys and chains, and which policy has each.
class Taken {
 public:
  explicit Taken(const std::vector<Definition>& definitions) : definitions_(definitions) {}

  /// Why this one cannot be in force beside those before it; empty: it can.
  std::string Add(std::uint32_t index) {
    const Definition& one = definitions_[index];
    std::string identity = std::to_string(one.domain.size()) + ':' + one.domain + one.name;
    if (const auto [at, is_new] = names_.try_emplace(std::move(identity), index); !is_new) {
      return Clash("policy name", one.name, at->second);
    }
    if (!one.key.empty()) {
      if (const auto [at, is_new] = keys_.try_emplace(one.key, index); !is_new) {
        return Clash("key", one.key, at->second);
      }
    }
    if (!one.ordered) return {};
    const auto other = chains_[one.domain].Add(one.match, index);
    return other ? Clash("the chain of policy", one.name, *other) : std::string();
  }

 private:
  std::string Clash(std::string_view what, const std::string& text, std::uint32_t other) const {
    return std::string(what) + " '" + text + "' is already used by " + definitions_[other].source;
  }

  const std::vector<Definition>& definitions_;
  TextMap<std::uint32_t> names_;  // domain + name
  TextMap<std::uint32_t> keys_;
  TextMap<ChainTree> chains_;  // by domain
};

}  // namespace

yaml::Problem ProblemAt(const std::string& source, std::string message) {
  if (message.starts_with(source + ": ")) message.erase(0, source.size() + 2);
  std::string file = source;
  const auto column = TakeNumber(file);
  const auto line = column ? TakeNumber(file) : std::nullopt;
  if (!line) return {source, {}, std::move(message)};
  return {std::move(file), {*line, *column}, std::move(message)};
}

std::vector<yaml::Problem> SetProblems(const std::vector<Definition>& definitions,
                                       const CompileOptions& options) {
  std::vector<yaml::Problem> problems;
  Taken taken(definitions);
  for (std::uint32_t i = 0; i < definitions.size() && problems.size() < kMostProblems; ++i) {
    const std::string& source = definitions[i].source;
    if (Status can = CheckChargeable(definitions[i], options); !can.ok()) {
      problems.push_back(ProblemAt(source, can.error().message));
    }
    if (std::string clash = taken.Add(i); !clash.empty()) {
      problems.push_back(ProblemAt(source, std::move(clash)));
    }
  }
  return problems;
}

}  // namespace weir::policy
