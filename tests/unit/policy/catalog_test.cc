#include "policy/catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "policy/policy_file.h"
#include "support/no_descriptors.h"
#include "support/temp_dir.h"

namespace weir::policy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Definition Stored(const std::string& key, std::int64_t limit) {
  Definition definition;
  definition.name = key;
  definition.key = key;
  definition.quota = *Quota::FixedWindow(limit, std::chrono::seconds(1));
  definition.source = "admin API";
  return definition;
}

std::string PolicyOf(const Catalog& catalog, std::string_view key) {
  const auto set = catalog.live().Current();
  const Policy& policy = set->ForKey(key);
  return policy.definition.name + "@" + policy.definition.source;
}

class CatalogTest : public ::testing::Test {
 protected:
  test::TempDir folder_;
  std::string path_ = (folder_ / "p.yaml").string();
  Catalog catalog_{{DefaultPolicy(), 0.1}};
};

TEST_F(CatalogTest, AFolderStandsForItsFiles) {
  folder_.Write("b.yaml", "policies: [{name: b, key: b, unlimited: true}]");
  folder_.Write("a.yml", "domain: d\ndescriptors: [{ key: k, color: red }]");
  folder_.Write(".hidden.yaml", "not: [a policy");
  folder_.Write("notes.txt", "not: [a policy");
  std::vector<yaml::Problem> problems;
  EXPECT_THAT(
      PolicyFiles({folder_.path().string(), "else.yaml"}, problems),
      ElementsAre((folder_ / "a.yml").string(), (folder_ / "b.yaml").string(), "else.yaml"));
  EXPECT_THAT(problems, IsEmpty());
  problems = catalog_.LoadFiles({folder_.path().string()});
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_THAT(problems[0].ToString(), HasSubstr("'color'"));
  Catalog lenient{{DefaultPolicy(), 0.1, true}};
  EXPECT_THAT(lenient.LoadFiles({folder_.path().string()}), IsEmpty());
  EXPECT_EQ(lenient.live().Current()->policies().size(), 2U);
}

TEST_F(CatalogTest, AFolderThatCannotBeReadChangesNothing) {
  const std::vector<std::string> paths = {folder_.path().string()};
  folder_.Write("p.yaml",
                "policies: [{name: f, key: a, quota: {fixed_window: {limit: 1, window: 1s}}}]");
  ASSERT_THAT(catalog_.LoadFiles(paths), IsEmpty());
  std::vector<yaml::Problem> problems;
  {
    const test::NoDescriptors none;
    problems = catalog_.LoadFiles(paths);
  }
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_THAT(problems[0].ToString(), HasSubstr(paths[0] + ": cannot be read: "));
  EXPECT_THAT(PolicyOf(catalog_, "a"), HasSubstr("f@"));
}

// A volume that is not mounted, or files that are being replaced, must not lift all limits.
TEST_F(CatalogTest, AFolderThatHasBecomeEmptyChangesNothing) {
  const std::vector<std::string> paths = {folder_.path().string()};
  EXPECT_THAT(catalog_.LoadFiles(paths), IsEmpty()) << "there were none before";
  folder_.Write("p.yaml",
                "policies: [{name: f, key: a, quota: {fixed_window: {limit: 1, window: 1s}}}]");
  ASSERT_THAT(catalog_.LoadFiles(paths), IsEmpty());
  std::filesystem::remove(path_);
  const std::vector<yaml::Problem> problems = catalog_.LoadFiles(paths);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_THAT(problems[0].ToString(), HasSubstr(paths[0] + ": has no policy files any more"));
  EXPECT_THAT(PolicyOf(catalog_, "a"), HasSubstr("f@"));
  folder_.Write("none.yaml", "policies: []");
  ASSERT_THAT(catalog_.LoadFiles(paths), IsEmpty());
  EXPECT_THAT(PolicyOf(catalog_, "a"), HasSubstr("default@"));
}

TEST_F(CatalogTest, TheFilesReadAtTheStartAreNoReload) {
  folder_.Write("p.yaml", "policies: [{name: f, key: a, unlimited: true}]");
  EXPECT_THAT(catalog_.LoadFiles({path_}), IsEmpty());
  EXPECT_EQ(catalog_.status().reloads, 0U);
  EXPECT_THAT(catalog_.LoadFiles({path_}), IsEmpty());
  EXPECT_EQ(catalog_.status().reloads, 1U);
}

TEST_F(CatalogTest, PoliciesOfAControlPlaneStandBesideThoseOfFiles) {
  folder_.Write("p.yaml", "policies: [{name: f, key: a, unlimited: true}]");
  EXPECT_THAT(catalog_.LoadFiles({path_}), IsEmpty());
  Definition managed = Stored("b", 5);
  managed.source = "xds:edge:1:1";
  EXPECT_THAT(catalog_.SetManaged({managed}), IsEmpty());
  EXPECT_EQ(PolicyOf(catalog_, "a"), "f@" + path_ + ":1:12");
  EXPECT_EQ(PolicyOf(catalog_, "b"), "b@xds:edge:1:1");
  // Reloading the files does not affect them, and an invalid state changes nothing.
  EXPECT_THAT(catalog_.LoadFiles({path_}), IsEmpty());
  EXPECT_THAT(catalog_.SetManaged({}, {{"xds", {}, "wrong"}}), ::testing::SizeIs(1));
  EXPECT_THAT(catalog_.SetManaged({managed, managed}), ::testing::SizeIs(1));
  EXPECT_EQ(PolicyOf(catalog_, "b"), "b@xds:edge:1:1");
  EXPECT_EQ(catalog_.CheckFree(Stored("b", 1)).error().code, Code::kAlreadyExists);
  EXPECT_THAT(catalog_.SetManaged({}), IsEmpty());
  EXPECT_EQ(PolicyOf(catalog_, "b"), "default@built in");
  EXPECT_EQ(catalog_.status().failed_reloads, 2U);
}

TEST_F(CatalogTest, APolicyWithAnUnknownStoreIsRefused) {
  folder_.Write("p.yaml", "policies: [{name: f, key: a, unlimited: true, store: hot}]");
  EXPECT_THAT(catalog_.LoadFiles({path_}), IsEmpty());  // this one knows no stores
  Catalog strict{{DefaultPolicy(), 0.1, false, std::vector<std::string>{"main", "cold"}}};
  const auto problems = strict.LoadFiles({path_});
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_THAT(problems[0].ToString(),
              HasSubstr("policy 'f': unknown store 'hot'; the stores are main, cold"));
  Definition stored = Stored("b", 5);
  stored.store = "hot";
  EXPECT_EQ(strict.CheckFree(stored).error().code, Code::kInvalidArgument);
  stored.store = "cold";
  EXPECT_TRUE(strict.CheckFree(stored).ok());
}

// Another node, which has the store, has accepted the policy.
TEST_F(CatalogTest, AStoredPolicyWithAnUnknownStoreKeepsNothingElseOutOfForce) {
  Catalog strict{{DefaultPolicy(), 0.1, false, std::vector<std::string>{"main"}}};
  Definition stored = Stored("b", 5);
  stored.store = "hot";
  ASSERT_TRUE(strict.SetStored({stored, Stored("c", 6)}).ok());
  EXPECT_EQ(PolicyOf(strict, "b"), "b@admin API");
  EXPECT_EQ(PolicyOf(strict, "c"), "c@admin API");
  EXPECT_THAT(strict.status().unable,
              ElementsAre("admin API: policy 'b': unknown store 'hot'; the stores are main"));
  EXPECT_EQ(strict.live().Current()->ForKey("b").unable, strict.status().unable.front());
  EXPECT_THAT(strict.live().Current()->ForKey("c").unable, IsEmpty());
  // Files are local to this node: their mistakes are still refused, and may come and go meanwhile.
  folder_.Write("p.yaml", "policies: [{name: f, key: a, unlimited: true, store: cold}]");
  EXPECT_EQ(strict.LoadFiles({path_}).size(), 1U);
  folder_.Write("p.yaml", "policies: [{name: f, key: a, unlimited: true}]");
  EXPECT_THAT(strict.LoadFiles({path_}), IsEmpty());
  EXPECT_EQ(strict.status().unable.size(), 1U);
  ASSERT_TRUE(strict.SetStored({Stored("c", 6)}).ok());
  EXPECT_THAT(strict.status().unable, IsEmpty());
}

TEST_F(CatalogTest, FilesAndStoredPoliciesAreInForceTogether) {
  folder_.Write("p.yaml", "policies: [{name: f, key: a, unlimited: true}]");
  EXPECT_THAT(catalog_.LoadFiles({path_}), IsEmpty());
  EXPECT_TRUE(catalog_.SetStored({Stored("b", 5)}).ok());
  EXPECT_EQ(PolicyOf(catalog_, "a"), "f@" + path_ + ":1:12");
  EXPECT_EQ(PolicyOf(catalog_, "b"), "b@admin API");
  EXPECT_EQ(PolicyOf(catalog_, "c"), "default@built in");
  EXPECT_EQ(catalog_.status().file_policies, 1U);
  EXPECT_EQ(catalog_.status().stored_policies, 1U);
}

TEST_F(CatalogTest, AnInvalidFileChangesNothingAndIsReported) {
  folder_.Write("p.yaml", "policies: [{name: f, key: a, unlimited: true}]");
  ASSERT_THAT(catalog_.LoadFiles({path_}), IsEmpty());
  const std::uint64_t version = catalog_.live().version();
  folder_.Write("p.yaml", "policies: [{name: g, key: a, unlimitd: true}]");
  const auto problems = catalog_.LoadFiles({path_});
  EXPECT_THAT(yaml::ToString(problems), HasSubstr("p.yaml:1:"));
  EXPECT_EQ(catalog_.live().version(), version);
  EXPECT_EQ(PolicyOf(catalog_, "a"), "f@" + path_ + ":1:12");
  EXPECT_EQ(catalog_.status().failed_reloads, 1U);
  EXPECT_EQ(catalog_.status().problems.size(), problems.size());
  folder_.Write("p.yaml", "policies: [{name: g, key: a, unlimited: true}]");
  EXPECT_THAT(catalog_.LoadFiles({path_}), IsEmpty());
  EXPECT_THAT(catalog_.status().problems, IsEmpty());
  EXPECT_EQ(PolicyOf(catalog_, "a"), "g@" + path_ + ":1:12");
}

TEST_F(CatalogTest, NamesThatTwoFilesUseAreRefused) {
  folder_.Write("p.yaml", "policies: [{name: f, key: a, unlimited: true}]");
  const std::string other =
      folder_.Write("q.yaml", "policies: [{name: f, key: b, unlimited: true}]").string();
  EXPECT_EQ(yaml::ToString(catalog_.LoadFiles({path_, other})),
            other + ":1:12: policy name 'f' is already used by " + path_ + ":1:12");
}

TEST_F(CatalogTest, FilesWinOverStoredPoliciesAndGiveThePlaceBack) {
  EXPECT_TRUE(catalog_.SetStored({Stored("a", 5), Stored("b", 6)}).ok());
  folder_.Write("p.yaml", "policies: [{name: f, key: a, unlimited: true}]");
  ASSERT_THAT(catalog_.LoadFiles({path_}), IsEmpty());
  EXPECT_EQ(PolicyOf(catalog_, "a"), "f@" + path_ + ":1:12");
  EXPECT_THAT(catalog_.status().set_aside, ElementsAre("a"));
  const Status taken = catalog_.CheckFree(Stored("a", 1));
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.error().code, Code::kAlreadyExists);
  EXPECT_TRUE(catalog_.CheckFree(Stored("c", 1)).ok());
  folder_.Write("p.yaml", "policies: []");
  ASSERT_THAT(catalog_.LoadFiles({path_}), IsEmpty());
  EXPECT_EQ(PolicyOf(catalog_, "a"), "a@admin API");
  EXPECT_THAT(catalog_.status().set_aside, IsEmpty());
}

const Definition& FilePolicy(const std::shared_ptr<const PolicySet>& set) {
  return set->policies().front().definition;
}

TEST_F(CatalogTest, AnOverrideHasTheSayAboutAFilePolicysShadow) {
  const auto write = [&](const char* shadow) {
    folder_.Write("p.yaml", std::string("domain: api\npolicies: [{name: f, match: {user: '*'}, "
                                        "quota: {fixed_window: {limit: 1, window: 1s}}, shadow: ") +
                                shadow + "}]");
    ASSERT_THAT(catalog_.LoadFiles({path_}), IsEmpty());
  };
  write("true");
  ASSERT_TRUE(catalog_.SetStored({}, {{"api", "f", false}}).ok());
  auto set = catalog_.live().Current();
  EXPECT_FALSE(FilePolicy(set).shadow);
  EXPECT_EQ(FilePolicy(set).shadow_in_file, true);
  EXPECT_TRUE(AsInFile(FilePolicy(set)).shadow);
  EXPECT_FALSE(AsInFile(FilePolicy(set)).shadow_in_file.has_value());
  EXPECT_EQ(catalog_.status().stored_policies, 1U);
  EXPECT_THAT(catalog_.status().set_aside, IsEmpty());
  write("true");  // a reload does not end it
  EXPECT_FALSE(FilePolicy(catalog_.live().Current()).shadow);
  write("false");
  ASSERT_TRUE(catalog_.SetStored({}, {{"api", "f", true}}).ok());
  EXPECT_TRUE(FilePolicy(catalog_.live().Current()).shadow);
  ASSERT_TRUE(catalog_.SetStored({}, {}).ok());
  set = catalog_.live().Current();
  EXPECT_FALSE(FilePolicy(set).shadow);
  EXPECT_FALSE(FilePolicy(set).shadow_in_file.has_value());
}

TEST_F(CatalogTest, AnOverrideWaitsForItsPolicy) {
  EXPECT_EQ(catalog_.CheckInFile({"api", "f", false}).error().code, Code::kNotFound);
  ASSERT_TRUE(catalog_.SetStored({}, {{"api", "f", false}}).ok());
  EXPECT_THAT(catalog_.status().set_aside, ElementsAre("api/f"));
  // It is in another domain, so it does not match.
  folder_.Write("p.yaml", "policies: [{name: f, match: {}, unlimited: true, shadow: true}]");
  ASSERT_THAT(catalog_.LoadFiles({path_}), IsEmpty());
  EXPECT_THAT(catalog_.status().set_aside, ElementsAre("api/f"));
  EXPECT_TRUE(FilePolicy(catalog_.live().Current()).shadow);
  EXPECT_FALSE(catalog_.CheckInFile({"api", "f", false}).ok());
  EXPECT_TRUE(catalog_.CheckInFile({"default", "f", false}).ok());
}

TEST_F(CatalogTest, WhatDoesNotFitTogetherLeavesTheOldInForce) {
  ASSERT_TRUE(catalog_.SetStored({Stored("a", 5)}, {}).ok());
  Definition same_key = Stored("a", 7);
  same_key.name = "other";
  EXPECT_FALSE(catalog_.SetStored({Stored("a", 6), same_key}, {}).ok());
  EXPECT_EQ(catalog_.live().Current()->ForKey("a").quota()->limit(), 5);
  // And nothing of it returns with the next change.
  EXPECT_THAT(catalog_.SetManaged({Stored("b", 1)}), IsEmpty());
  EXPECT_EQ(catalog_.live().Current()->ForKey("a").quota()->limit(), 5);
}

TEST_F(CatalogTest, AStoredPolicyWithoutAKeyClashesByItsNameAlone) {
  Definition stored = Stored("all", 5);
  stored.key.clear();
  stored.has_match = true;
  ASSERT_TRUE(catalog_.SetStored({stored}, {}).ok());
  EXPECT_EQ(catalog_.status().stored_policies, 1U);
  EXPECT_THAT(catalog_.status().set_aside, IsEmpty());
}

TEST_F(CatalogTest, WhoeverAsksSeesASetBeforeItIsInForce) {
  std::vector<std::size_t> sizes;
  catalog_.BeforePublishing([&](const PolicySet& set) { sizes.push_back(set.policies().size()); });
  ASSERT_TRUE(catalog_.SetStored({Stored("a", 5)}, {}).ok());
  EXPECT_THAT(sizes, ElementsAre(0U, 1U));
}

TEST_F(CatalogTest, EachWhoAsksSeesEverySetInTheOrderOfAsking) {
  std::string seen;
  catalog_.BeforePublishing([&](const PolicySet&) { seen += 'a'; });
  catalog_.BeforePublishing([&](const PolicySet&) { seen += 'b'; });
  ASSERT_TRUE(catalog_.SetStored({Stored("a", 5)}, {}).ok());
  EXPECT_EQ(seen, "abab");
}

}  // namespace
}  // namespace weir::policy
