#include "config/file_settings.h"

#include <gmock/gmock.h>

#include "support/temp_dir.h"

namespace weir::config {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class FileSettingsTest : public ::testing::Test {
 protected:
  FileSettings With(std::string_view text) {
    const auto read = FileSettings::Read(dir_.Write("weir.yaml", text).string());
    EXPECT_TRUE(read.ok());
    return read.ok() ? *read : FileSettings();
  }

  test::TempDir dir_;
};

constexpr std::string_view kFile = R"(
threads: 2
admin: { keys: [first-key], allow: [127.0.0.0/8] }
log:
  level: warn
)";

TEST_F(FileSettingsTest, NamesWhatHasChanged) {
  const FileSettings before = With(kFile);
  EXPECT_THAT(before.ChangedIn(With(kFile)), IsEmpty());
  EXPECT_THAT(before.ChangedIn(With("log: {level: warn}  # the same\nthreads: 2\n"
                                    "admin: {allow: [127.0.0.0/8], keys: [first-key]}")),
              IsEmpty());
  EXPECT_THAT(before.ChangedIn(With("threads: 2\nlog: {level: warn, format: json}\n"
                                    "admin: {keys: [first-key, second-key]}")),
              ElementsAre("admin.allow", "admin.keys", "log.format"));
  EXPECT_THAT(FileSettings().ChangedIn(before),
              ElementsAre("admin.allow", "admin.keys", "log.level", "threads"));
}

TEST_F(FileSettingsTest, AKeyInAFileIsWhatItHolds) {
  const std::string path = dir_.Write("ci.key", "one\n").string();
  for (const std::string& keys :
       {"[{name: ci, roles: [read], file: " + path + "}]", "['ci:read:@" + path + "']"}) {
    dir_.Write("ci.key", "one\n");
    const FileSettings before = With("access: {keys: " + keys + "}");
    EXPECT_THAT(before.ChangedIn(With("access: {keys: " + keys + "}")), IsEmpty());
    dir_.Write("ci.key", "two\n");
    EXPECT_THAT(before.ChangedIn(With("access: {keys: " + keys + "}")), ElementsAre("access.keys"));
  }
}

TEST_F(FileSettingsTest, WhatCannotBeReadIsAnError) {
  EXPECT_FALSE(FileSettings::Read((dir_ / "none.yaml").string()).ok());
  EXPECT_FALSE(FileSettings::Read(dir_.Write("weir.yaml", "a: [").string()).ok());
  EXPECT_TRUE(FileSettings::Read("")->ChangedIn(With("")).empty());
}

}  // namespace
}  // namespace weir::config
