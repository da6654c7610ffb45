// `weir restore`: after a backup is restored, payments are not executed again unnoticed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "drivers/sqlite/connection.h"
#include "support/child_process.h"
#include "support/http_client.h"
#include "support/paths.h"
#include "support/postgres_server.h"
#include "support/temp_dir.h"
#include "support/weir_process.h"

namespace weir::slots {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Restore : public testing::Test {
 protected:
  test::WeirProcess Serve(const std::string& slots = "sqlite:") {
    return test::WeirProcess({"serve", "--http", "127.0.0.1:0", "--grpc", "off", "--resp", "off",
                              "--data", data_, "--slots-store", slots});
  }
  void Post(std::uint16_t port, const std::string& path, const std::string& body) {
    const auto answer = test::HttpClient(port).Post(path, body);
    ASSERT_LT(answer.status, 300) << answer.body;
  }
  void BackUp() {
    auto connection = weir::sqlite::Connection::Open({.path = data_ + "/weir.db"});
    ASSERT_TRUE(connection.ok()) << connection.error().message;
    ASSERT_TRUE((*connection)->Execute(("VACUUM INTO '" + backup_ + "'").c_str()).ok());
  }
  /// The line of `event` that a dispatcher prints.
  std::string Dispatched(std::uint16_t port, const std::string& event) {
    test::ChildProcess dispatcher({test::Program(), "dispatch", "--config", "pay", "--url",
                                   "http://127.0.0.1:" + std::to_string(port)});
    const auto line = dispatcher.WaitForLine("\"" + event + "\"");
    EXPECT_TRUE(line) << dispatcher.error_output();
    EXPECT_EQ(dispatcher.Terminate(), 0) << "it reports what it delivered";
    return line.value_or("");
  }

  test::TempDir dir_;
  const std::string data_ = (dir_ / "data").string();
  const std::string backup_ = (dir_ / "backup.db").string();
};

constexpr const char* kConfig = R"({"configName":"pay","windowSize":"PT1S","maxPerWindow":1000})";
constexpr const char* kKept =
    R"({"eventId":"kept","configName":"pay","requestedTime":"2025-06-01T09:00:00Z"})";
constexpr const char* kLost =
    R"({"eventId":"lost","configName":"pay","requestedTime":"2025-06-01T09:00:00Z"})";

TEST_F(Restore, WhatWasExecutedSinceTheBackupIsARedelivery) {
  {
    test::WeirProcess weir = Serve();
    const std::uint16_t port = weir.Port("http");
    Post(port, "/admin/rate-limit/config", kConfig);
    Post(port, "/api/v1/slots", kKept);
    BackUp();
    EXPECT_THAT(Dispatched(port, "kept"), HasSubstr(R"("attempt":1,"redelivered":false)"));
    Post(port, "/api/v1/slots", kLost);
    EXPECT_THAT(Dispatched(port, "lost"), HasSubstr(R"("attempt":1,"redelivered":false)"));
    const auto busy = test::RunProgram({test::Program(), "restore", backup_, "--data", data_});
    EXPECT_NE(busy.exit_code, 0);
    EXPECT_THAT(busy.error_output, HasSubstr("in use"));
    EXPECT_EQ(weir.process().Terminate(), 0);
  }

  const auto restored = test::RunProgram({test::Program(), "restore", backup_, "--data", data_});
  EXPECT_EQ(restored.exit_code, 0) << restored.error_output;
  EXPECT_THAT(restored.output, AllOf(HasSubstr("may have been executed already: 1 "),
                                     HasSubstr("weir.db.before-restore")));

  test::WeirProcess weir = Serve();
  const std::uint16_t port = weir.Port("http");
  EXPECT_THAT(Dispatched(port, "kept"), HasSubstr(R"("attempt":2,"redelivered":true)"));
  Post(port, "/api/v1/slots", kLost);
  EXPECT_THAT(Dispatched(port, "lost"), HasSubstr(R"("attempt":2,"redelivered":true)"));
  EXPECT_THAT(test::HttpClient(port).Get("/api/v1/slots/kept").body, HasSubstr("backup-restored"));
}

TEST_F(Restore, APostgresqlThatWasRestoredIsMarkedWhereItIs) {
  const test::PostgresServer postgres;
  test::WeirProcess weir = Serve(postgres.url());
  const std::uint16_t port = weir.Port("http");
  Post(port, "/admin/rate-limit/config", kConfig);
  Post(port, "/api/v1/slots", kKept);
  const auto marked = test::RunProgram({test::Program(), "restore", "--store", postgres.url()});
  EXPECT_EQ(marked.exit_code, 0) << marked.error_output;
  EXPECT_THAT(marked.output, HasSubstr("may have been executed already: 1 "));
  EXPECT_THAT(Dispatched(port, "kept"), HasSubstr(R"("attempt":2,"redelivered":true)"));
  Post(port, "/api/v1/slots", kLost);
  EXPECT_THAT(Dispatched(port, "lost"), HasSubstr(R"("attempt":2,"redelivered":true)"));
}

// Nothing would be marked, and the payments of the right database would be executed again.
TEST_F(Restore, ADatabaseThatIsMisspeltIsAnErrorAndIsNotMade) {
  const std::string misspelt = (dir_ / "wier.db").string();
  const auto marked =
      test::RunProgram({test::Program(), "restore", "--store", "sqlite:" + misspelt});
  EXPECT_EQ(marked.exit_code, 2);
  EXPECT_EQ(marked.error_output,
            "weir: " + misspelt + ": cannot be read: No such file or directory\n");
  EXPECT_FALSE(std::filesystem::exists(misspelt));
  const std::string other = dir_.Write("other.db", "no database").string();
  const auto not_ours =
      test::RunProgram({test::Program(), "restore", "--store", "sqlite:" + other});
  EXPECT_EQ(not_ours.exit_code, 2);
  EXPECT_THAT(not_ours.error_output, HasSubstr(other + ": not a database of Weir"));
  const std::string folder = dir_.path().string();
  const auto is_folder = test::RunProgram({test::Program(), "restore", folder, "--data", data_});
  EXPECT_EQ(is_folder.exit_code, 2);
  EXPECT_EQ(is_folder.error_output, "weir: " + folder + ": is a directory; expected a file\n");
  EXPECT_FALSE(std::filesystem::exists(data_)) << "a misspelt backup leaves no folder behind";
}

TEST_F(Restore, AFileThatIsNoBackupReplacesNothing) {
  { EXPECT_GT(Serve().Port("http"), 0); }
  std::ofstream(backup_) << std::string(10'000, 'x');
  const auto refused = test::RunProgram({test::Program(), "restore", backup_, "--data", data_});
  EXPECT_NE(refused.exit_code, 0) << refused.error_output;
  EXPECT_THAT(refused.error_output, HasSubstr(backup_));
  EXPECT_GT(Serve().Port("http"), 0);
}

}  // namespace
}  // namespace weir::slots
