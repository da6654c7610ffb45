// The reference pages match the program: every setting is listed with its flag, and every example
// is parsed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/config.h"
#include "policy/policy_file.h"
#include "policy/policy_set.h"
#include "support/paths.h"
#include "support/temp_dir.h"

namespace weir::config {
namespace {

using policy::yaml::Problem;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string Page(const std::string& name) {
  return test::ReadFile(test::SourcePath("docs/reference/" + name));
}

std::vector<std::string> Examples(const std::string& page) {
  constexpr std::string_view kOpen = "```yaml\n";
  std::vector<std::string> examples;
  for (std::size_t at = page.find(kOpen); at != std::string::npos; at = page.find(kOpen, at)) {
    at += kOpen.size();
    examples.push_back(page.substr(at, page.find("```", at) - at));
  }
  return examples;
}

TEST(Documentation, ListsEverySettingWithItsFlag) {
  const std::string page = Page("configuration.md");
  for (const SettingInfo& info : Settings()) {
    const std::string flag = info.flag.empty() ? "" : " `" + std::string(info.flag) + "`";
    EXPECT_THAT(page, HasSubstr("| `" + std::string(info.key) + "` |" + flag + " |"));
  }
}

TEST(Documentation, ConfigurationExamplesAreRight) {
  const std::vector<std::string> examples = Examples(Page("configuration.md"));
  ASSERT_THAT(examples, SizeIs(2));
  for (const std::string& example : examples) {
    std::vector<Problem> problems;
    Parse(example, "example", {}, problems);
    EXPECT_EQ(policy::yaml::ToString(problems), "") << example;
  }
}

TEST(Documentation, PolicyExamplesAreRight) {
  const std::vector<std::string> examples = Examples(Page("policies.md"));
  ASSERT_THAT(examples, SizeIs(2));
  for (const std::string& example : examples) {
    std::vector<Problem> problems;
    auto definitions = policy::ParsePolicies(example, "example", problems);
    EXPECT_EQ(policy::yaml::ToString(problems), "") << example;
    EXPECT_FALSE(definitions.empty());
    policy::PolicyIds ids;
    EXPECT_TRUE(
        policy::PolicySet::Compile(std::move(definitions), {policy::DefaultPolicy(), 0.1}, ids)
            .ok());
  }
}

}  // namespace
}  // namespace weir::config
