// The guarantees of TLS, on a real server without it, with an invalid certificate, and with a
// valid one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "drivers/postgres/connection.h"
#include "drivers/postgres/migration.h"
#include "support/certificates.h"
#include "support/database_files.h"
#include "support/postgres_server.h"

namespace weir::postgres {
namespace {

using ::testing::HasSubstr;

namespace fs = std::filesystem;

class PostgresTls : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    certificates_ = new test::Certificates;
    plain_ = new test::PostgresServer;
    right_ = Start(certificates_->Issue("localhost", "right"));
    other_ = Start(certificates_->SelfSigned("elsewhere.example", "other"));
  }
  static void TearDownTestSuite() {
    delete other_;
    delete right_;
    delete plain_;
    delete certificates_;
  }

  static test::PostgresServer* Start(const test::Certificates::Pair& pair) {
    fs::permissions(pair.key, fs::perms::owner_read | fs::perms::owner_write);
    test::GiveTo("postgres", certificates_->dir().path());
    return new test::PostgresServer({"ssl=on", "ssl_cert_file=" + pair.certificate.string(),
                                     "ssl_key_file=" + pair.key.string()});
  }
  static std::string Ca(const char* file) {
    return "&tls_ca=" + (certificates_->dir().path() / file).string();
  }

  /// "TLS" or "clear", or the error if there is no connection.
  static std::string HowConnected(const std::string& url) {
    const Status migrated = Migrate(url, "test", {});
    boost::asio::io_context io;
    Connection connection(io, {.url = url});
    std::optional<Answer> answer;
    connection.Send("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()", {},
                    [&](Answer got) { answer = std::move(got); });
    while (!answer && io.run_one_for(std::chrono::seconds(20)) > 0) {
    }
    if (!answer) return "no answer";
    EXPECT_EQ(migrated.ok(), answer->status.ok());  // both ways of connecting agree
    if (!answer->status.ok()) return "error: " + answer->status.error().message;
    return answer->rows.Int(0, 0) != 0 ? "TLS" : "clear";
  }

  static inline test::Certificates* certificates_;
  static inline test::PostgresServer* plain_;
  static inline test::PostgresServer* right_;
  static inline test::PostgresServer* other_;
};

TEST_F(PostgresTls, WithoutTlsNobodyWhoRequiresItIsConnected) {
  EXPECT_EQ(HowConnected(plain_->tcp_url()), "clear");
  EXPECT_THAT(HowConnected(plain_->tcp_url() + "?tls=required" + Ca("ca.pem")), HasSubstr("error"));
  EXPECT_THAT(HowConnected(plain_->tcp_url() + "?tls=insecure-no-verify"), HasSubstr("error"));
}

TEST_F(PostgresTls, RequiredMeansAVerifiedChain) {
  EXPECT_EQ(HowConnected(right_->tcp_url() + "?tls=required" + Ca("ca.pem")), "TLS");
  EXPECT_THAT(HowConnected(right_->tcp_url() + "?tls=required"), HasSubstr("error"));
  EXPECT_THAT(HowConnected(right_->tcp_url() + "?tls=required" + Ca("other.pem")),
              HasSubstr("error"));
  EXPECT_EQ(HowConnected(right_->tcp_url() + "?tls=insecure-no-verify"), "TLS");
  EXPECT_EQ(HowConnected(right_->tcp_url() + "?tls=off"), "clear");
}

TEST_F(PostgresTls, ACertificateForAnotherNameIsRefused) {
  EXPECT_THAT(HowConnected(other_->tcp_url() + "?tls=required" + Ca("other.pem")),
              HasSubstr("error"));
  EXPECT_EQ(HowConnected(other_->tcp_url() + "?tls=insecure-no-verify"), "TLS");
}

TEST_F(PostgresTls, WhatSoundsLikeVerificationAndIsNoneIsRefused) {
  EXPECT_THAT(HowConnected(right_->tcp_url() + "?sslmode=require"), HasSubstr("does not verify"));
}

}  // namespace
}  // namespace weir::postgres
