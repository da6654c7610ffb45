#include "drivers/sqlite/database.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/blocking.h"

namespace weir::sqlite {
namespace {

using ::testing::HasSubstr;

constexpr const char* kSteps[] = {
    "CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);",
    "ALTER TABLE item ADD COLUMN note TEXT NOT NULL DEFAULT 'none';",
};

class DatabaseTest : public ::testing::Test {
 protected:
  DatabaseTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "weir-sqlite-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    path_ = (folder_ / "weir.db").string();
  }
  ~DatabaseTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<Database> Open(DatabaseOptions options = {}) {
    options.path = path_;
    Result<std::unique_ptr<Database>> opened = Database::Open(options);
    EXPECT_TRUE(opened.ok()) << opened.error().message;
    return std::move(*opened);
  }

  std::unique_ptr<Database> OpenMigrated(DatabaseOptions options = {}) {
    std::unique_ptr<Database> database = Open(std::move(options));
    EXPECT_TRUE(database->Migrate("items", kSteps).ok());
    return database;
  }

  static Database::Job Insert(std::string name) {
    return [name = std::move(name)](Connection& connection) -> Status {
      Result<Statement> insert = connection.Prepare("INSERT INTO item (name) VALUES (?1)");
      if (!insert.ok()) return insert.error();
      return insert->Bind(1, name).Run();
    };
  }

  static std::int64_t Count(Database& database) {
    std::int64_t count = -1;
    Status read = database.Read([&](Connection& connection) -> Status {
      Result<Statement> query = connection.Prepare("SELECT count(*) FROM item");
      if (!query.ok()) return query.error();
      Result<bool> row = query->Step();
      if (!row.ok()) return row.error();
      count = query->Int(0);
      return {};
    });
    EXPECT_TRUE(read.ok());
    return count;
  }

  std::filesystem::path folder_;
  std::string path_;
};

TEST_F(DatabaseTest, AWriteThatWasToldDoneIsReadAtOnceAndAfterReopening) {
  {
    auto database = OpenMigrated();
    ASSERT_TRUE(database->WriteAndWait(Insert("a")).ok());
    EXPECT_EQ(Count(*database), 1);
  }
  EXPECT_EQ(Count(*Open()), 1);
}

TEST_F(DatabaseTest, AFailedJobLosesOnlyItsOwnChanges) {
  auto database = OpenMigrated();
  ASSERT_TRUE(database->WriteAndWait(Insert("taken")).ok());
  // All four are queued behind a blocked job, so that one transaction includes them.
  std::promise<void> go;
  std::vector<std::promise<Status>> told(4);
  database->Write(
      [future = go.get_future().share()](Connection&) -> Status {
        future.wait();
        return {};
      },
      [](const Status&) {});
  const auto tell = [&told](std::size_t i) {
    return [&told, i](Status status) { told[i].set_value(std::move(status)); };
  };
  database->Write(Insert("before"), tell(0));
  database->Write(
      [](Connection& connection) -> Status {
        if (Status first = Insert("half")(connection); !first.ok()) return first;
        return Insert("taken")(connection);
      },
      tell(1));
  database->Write([](Connection&) -> Status { throw std::runtime_error("boom"); }, tell(2));
  database->Write(Insert("after"), tell(3));
  go.set_value();

  EXPECT_TRUE(told[0].get_future().get().ok());
  const Status clash = told[1].get_future().get();
  ASSERT_FALSE(clash.ok());
  EXPECT_EQ(clash.error().code, Code::kAlreadyExists);
  const Status thrown = told[2].get_future().get();
  ASSERT_FALSE(thrown.ok());
  EXPECT_THAT(thrown.error().message, HasSubstr("boom"));
  EXPECT_TRUE(told[3].get_future().get().ok());
  EXPECT_EQ(Count(*database), 3);  // accepted, before, after; no half transaction
}

TEST_F(DatabaseTest, ManyWritersShareCommitsAndLoseNothing) {
  auto database = OpenMigrated();
  constexpr int kThreads = 4;
  constexpr int kEach = 250;
  std::atomic<int> ok{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        database->Write(Insert(std::to_string(t) + "/" + std::to_string(i)),
                        [&ok](const Status& status) { ok += status.ok() ? 1 : 0; });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  // Jobs run in order, so when a later one is done all earlier ones are.
  ASSERT_TRUE(database->WriteAndWait(Insert("last")).ok());
  EXPECT_EQ(ok.load(), kThreads * kEach);
  EXPECT_EQ(Count(*database), kThreads * kEach + 1);
}

TEST_F(DatabaseTest, AFullQueueRefusesAtOnce) {
  auto database = OpenMigrated({.max_queued = 1});
  std::promise<void> started;
  std::promise<void> go;
  database->Write(
      [&started, future = go.get_future().share()](Connection&) -> Status {
        started.set_value();
        future.wait();
        return {};
      },
      [](const Status&) {});
  started.get_future().wait();
  database->Write(Insert("waits"), [](const Status&) {});
  Status refused;
  database->Write(Insert("too many"), [&refused](Status status) { refused = std::move(status); });
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kResourceExhausted);
  go.set_value();
  database.reset();
  EXPECT_EQ(Count(*Open()), 1);  // closing finished what was queued
}

TEST_F(DatabaseTest, AJobThatEndsTheTransactionFailsTheGroup) {
  auto database = OpenMigrated();
  const Status ended = database->WriteAndWait([](Connection& connection) -> Status {
    if (Status wrote = Insert("x")(connection); !wrote.ok()) return wrote;
    return connection.Execute("ROLLBACK");
  });
  EXPECT_FALSE(ended.ok());
  EXPECT_EQ(Count(*database), 0);
  EXPECT_TRUE(database->WriteAndWait(Insert("y")).ok());
}

TEST_F(DatabaseTest, MigrationsRunOncePerComponentAndContinueWhereTheyStopped) {
  auto database = Open();
  ASSERT_TRUE(database->Migrate("items", std::span(kSteps).first(1)).ok());
  ASSERT_TRUE(database->WriteAndWait(Insert("old")).ok());
  ASSERT_TRUE(database->Migrate("items", kSteps).ok());
  ASSERT_TRUE(database->Migrate("items", kSteps).ok());
  std::string note;
  ASSERT_TRUE(database
                  ->Read([&](Connection& connection) -> Status {
                    Result<Statement> query =
                        connection.Prepare("SELECT note FROM item WHERE name = 'old'");
                    if (!query.ok()) return query.error();
                    if (Result<bool> row = query->Step(); !row.ok()) return row.error();
                    note = query->Text(0);
                    return {};
                  })
                  .ok());
  EXPECT_EQ(note, "none");
}

TEST_F(DatabaseTest, AFileOfANewerProgramIsRefused) {
  auto database = OpenMigrated();
  const Status refused = database->Migrate("items", std::span(kSteps).first(1));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
  EXPECT_THAT(refused.error().message, HasSubstr("newer"));
}

TEST_F(DatabaseTest, AFailedMigrationStepLeavesTheVersionBefore) {
  auto database = Open();
  const char* const broken[] = {kSteps[0], "CREATE TABLE half (id INTEGER); SELECT nonsense;"};
  EXPECT_FALSE(database->Migrate("items", broken).ok());
  EXPECT_TRUE(database->Migrate("items", kSteps).ok());
  EXPECT_FALSE(database
                   ->WriteAndWait([](Connection& connection) {
                     return connection.Execute("INSERT INTO half VALUES (1)");
                   })
                   .ok());
}

TEST_F(DatabaseTest, ReadersCannotWrite) {
  auto database = OpenMigrated();
  EXPECT_FALSE(database->Read(Insert("sneaky")).ok());
  EXPECT_EQ(Count(*database), 0);
}

TEST_F(DatabaseTest, TheFileIsForItsOwnerAlone) {
  auto database = OpenMigrated();
  struct stat info {};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
}

TEST_F(DatabaseTest, AFileThatIsNoDatabaseIsAnErrorThatNamesIt) {
  std::filesystem::create_directory(path_);
  const Result<std::unique_ptr<Database>> opened = Database::Open({.path = path_});
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, Code::kInvalidArgument);
  EXPECT_THAT(opened.error().message, HasSubstr(path_));
}

TEST_F(DatabaseTest, StatementsKeepEmptyTextAndNullApart) {
  auto database = Open();
  ASSERT_TRUE(database
                  ->WriteAndWait([](Connection& connection) -> Status {
                    if (Status made = connection.Execute("CREATE TABLE v (a, b, c)"); !made.ok())
                      return made;
                    Result<Statement> insert =
                        connection.Prepare("INSERT INTO v VALUES (?1, ?2, ?3)");
                    if (!insert.ok()) return insert.error();
                    insert->Bind(1, std::string_view()).BindNull(2);
                    return insert->Bind(3, std::int64_t{-5'000'000'000}).Run();
                  })
                  .ok());
  ASSERT_TRUE(database
                  ->Read([](Connection& connection) -> Status {
                    Result<Statement> query = connection.Prepare("SELECT typeof(a), b, c FROM v");
                    if (!query.ok()) return query.error();
                    if (Result<bool> row = query->Step(); !row.ok()) return row.error();
                    EXPECT_EQ(query->Text(0), "text");
                    EXPECT_TRUE(query->IsNull(1));
                    EXPECT_EQ(query->Int(2), -5'000'000'000);
                    return {};
                  })
                  .ok());
}

// SQLite's shared lock: 510 bytes from 2 after 1 GiB, as documented in its file format.
bool IsLockedByAnother(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = (1 << 30) + 2;
  lock.l_len = 510;
  const bool asked = ::fcntl(fd, F_GETLK, &lock) == 0;
  ::close(fd);
  return asked && lock.l_type != F_UNLCK;
}

// Without the lock, `sqlite3 weir.db .backup` on a running service would remove its -wal file, and
// everything acknowledged from then on would be lost in a crash.
TEST_F(DatabaseTest, OtherProgramsSeeThatTheFileIsInUse) {
  auto database = OpenMigrated();
  ASSERT_TRUE(database->WriteAndWait(Insert("a")).ok());
  // As components do when they migrate: they open and close one more connection.
  ASSERT_TRUE(database->Migrate("items", kSteps).ok());
  auto second = Open();
  second.reset();
  ASSERT_TRUE(database->WriteAndWait(Insert("b")).ok());
  const pid_t child = ::fork();
  if (child == 0) ::_exit(IsLockedByAnother(path_) ? 0 : 1);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(DatabaseTest, ReadLaterSeesWhatWasWrittenAndAnswersOnAnotherThread) {
  const auto database = Open();
  ASSERT_TRUE(database->Migrate("items", kSteps).ok());
  ASSERT_TRUE(database
                  ->WriteAndWait([](Connection& connection) {
                    return connection.Execute("INSERT INTO item (name) VALUES ('a')");
                  })
                  .ok());
  for (const auto how : {&Database::ReadLater, &Database::ReadAllLater}) {
    std::promise<std::pair<Status, std::thread::id>> told;
    std::int64_t count = 0;
    ((*database).*how)(
        [&count](Connection& connection) -> Status {
          auto query = connection.Prepare("SELECT count(*) FROM item");
          if (!query.ok()) return query.error();
          if (auto row = query->Step(); !row.ok()) return row.error();
          count = query->Int(0);
          return {};
        },
        [&told](Status status) {
          told.set_value({std::move(status), std::this_thread::get_id()});
        });
    const auto [status, thread] = told.get_future().get();
    EXPECT_TRUE(status.ok());
    EXPECT_NE(thread, std::this_thread::get_id());
    EXPECT_EQ(count, 1);
  }
}

TEST_F(DatabaseTest, LongReadsRunOneByOneAndTooManyAreRefused) {
  const auto database = Open({.max_queued_long_reads = 2});
  std::promise<void> go;
  std::shared_future<void> gone = go.get_future().share();
  std::atomic<int> running = 0;
  std::atomic<int> most = 0;
  std::atomic<int> begun = 0;
  std::atomic<int> answered = 0;
  std::atomic<int> refused = 0;
  const auto ask = [&] {
    database->ReadAllLater(
        [&](Connection&) -> Status {
          most = std::max(most.load(), ++running);
          ++begun;
          gone.wait();
          --running;
          return {};
        },
        [&](const Status& status) { ++(status.ok() ? answered : refused); });
  };
  ask();
  while (begun == 0) std::this_thread::yield();
  for (int i = 0; i < 5; ++i) ask();
  EXPECT_EQ(refused, 3);
  // Short reads do not wait for them.
  std::promise<Status> quick;
  database->ReadLater([](Connection&) -> Status { return {}; },
                      [&quick](Status status) { quick.set_value(std::move(status)); });
  EXPECT_TRUE(quick.get_future().get().ok());
  go.set_value();
  while (answered < 3) std::this_thread::yield();
  EXPECT_EQ(most, 1);
}

TEST_F(DatabaseTest, OnAReactorsThreadNothingIsReadOrWaitedFor) {
  const auto database = Open();
  const auto nothing = [](Connection&) -> Status { return {}; };
  const NeverBlocks mark;
  EXPECT_DEATH((void)database->Read(nothing), "blocking call on a reactor's thread");
  EXPECT_DEATH((void)database->WriteAndWait(nothing), "blocking call on a reactor's thread");
}

}  // namespace
}  // namespace weir::sqlite
