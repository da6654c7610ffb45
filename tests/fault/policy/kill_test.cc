// An acknowledged policy survives kill -9 of the process that acknowledged it.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "admin/sqlite/sqlite_policy_store.h"
#include "support/temp_dir.h"

namespace weir::policy::sqlite {
namespace {

struct Opened {
  explicit Opened(const std::string& path)
      : catalog(CompileOptions{DefaultPolicy(), 0.1}),
        database(std::move(*weir::sqlite::Database::Open({.path = path}))),
        store(std::move(*SqlitePolicyStore::Open(*database, catalog))) {}
  ~Opened() { database.reset(); }  // before the store, whose jobs it runs
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  Catalog catalog;
  std::unique_ptr<weir::sqlite::Database> database;
  std::unique_ptr<SqlitePolicyStore> store;
};

// Creates policies 0, 1, 2, … forever and writes a byte for each that is done.
[[noreturn]] void CreateForEver(const std::string& path, int said) {
  Opened opened(path);
  for (int i = 0;; ++i) {
    StoredPolicy policy;
    policy.key = std::to_string(i);
    opened.store->Create(policy, "child", [said](const Result<StoredPolicy>& created) {
      if (created.ok() && ::write(said, "+", 1) != 1) ::_exit(1);
    });
    // Not too many at a time, so that the kill falls between and within commits.
    while (opened.database->queued() > 8) ::usleep(100);
  }
}

TEST(PolicyFault, WhatWasAnsweredSurvivesAKill) {
  const test::TempDir folder;
  const std::string path = (folder / "weir.db").string();
  int answered_before = 0;
  for (int round = 1; round <= 3; ++round) {
    std::filesystem::remove_all(folder.path());
    std::filesystem::create_directory(folder.path());
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) CreateForEver(path, ends[1]);
    ::close(ends[1]);
    int answered = 0;
    char byte = 0;
    while (answered < 40 * round && ::read(ends[0], &byte, 1) == 1) ++answered;
    ::kill(child, SIGKILL);
    while (::read(ends[0], &byte, 1) == 1) ++answered;
    ::close(ends[0]);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    ASSERT_GE(answered, 40 * round);

    const Opened after(path);
    for (int i = 0; i < answered; ++i) {
      ASSERT_TRUE(after.store->Get(std::to_string(i)).ok()) << i << " of " << answered;
    }
    // Each change has its version and its audit log entry, and nothing is half done.
    const std::size_t total = after.store->List("", 1).total;
    after.store->History("", 1000, [&](const auto& history) {
      ASSERT_TRUE(history.ok());
      EXPECT_EQ(history->size(), std::min<std::size_t>(total, 1000));
    });
    after.store->ListEntries({.limit = 1000}, [&](const auto& entries) {
      ASSERT_TRUE(entries.ok());
      EXPECT_EQ(entries->size(), std::min<std::size_t>(total, 1000));
    });
    answered_before += answered;
  }
  EXPECT_GE(answered_before, 40 + 80 + 120);
}

}  // namespace
}  // namespace weir::policy::sqlite
