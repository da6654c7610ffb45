// The driver on real servers: authentication, the guarantees of TLS, and how the server treats a
// client that hangs. The same tests for MariaDB and MySQL.

#include "drivers/mysql/connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

#include "support/certificates.h"
#include "support/database_files.h"
#include "support/mariadb_server.h"
#include "support/mysql_server.h"
#include "support/wait.h"

namespace weir::mysql {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;

/// Two servers, one of them without TLS, for all tests of a kind.
template <typename Server>
class MysqlConnectionTest : public ::testing::Test {
 protected:
  static constexpr bool kIsMariadb = std::is_same_v<Server, test::MariadbServer>;
  static constexpr bool kIsMysql8 = std::is_same_v<Server, test::Mysql8Server>;

  void SetUp() override {
    if (!test::AbsenceOf<Server>().empty()) GTEST_SKIP() << test::AbsenceOf<Server>();
  }

  static test::Certificates& Authority() {
    static test::Certificates certificates(kIsMysql8 ? test::Certificates::Keys::kRsa
                                                     : test::Certificates::Keys::kEc);
    return certificates;
  }
  /// Uses the certificate that Show installed.
  static Server& Secure() {
    static Server server = [] {
      Show(Authority().Issue("localhost", "right"), Authority().authority());
      const std::string folder = Authority().dir().path().string();
      return Server({"ssl-cert=" + folder + "/shown.pem", "ssl-key=" + folder + "/shown.key",
                     "ssl-ca=" + folder + "/shown_ca.pem"});
    }();
    return server;
  }
  static Server& Plain() {
    static Server server({kIsMariadb || kIsMysql8 ? "skip-ssl" : "tls-version="});
    return server;
  }

  static void Show(const test::Certificates::Pair& pair, const fs::path& ca) {
    const fs::path folder = Authority().dir().path();
    fs::copy_file(pair.certificate, folder / "shown.pem", fs::copy_options::overwrite_existing);
    fs::copy_file(ca, folder / "shown_ca.pem", fs::copy_options::overwrite_existing);
    fs::copy_file(pair.key, folder / "shown.key", fs::copy_options::overwrite_existing);
    if (kIsMariadb) test::GiveTo("mysql", folder);
  }
  static void ShowNow(const test::Certificates::Pair& pair, const fs::path& ca) {
    Show(pair, ca);
    if (kIsMysql8) {  // reads it only at startup
      Secure().Stop();
      Secure().Start();
      return;
    }
    Secure().Query(kIsMariadb ? "FLUSH SSL" : "ALTER INSTANCE RELOAD TLS");
  }

  static std::string Ca(const fs::path& file = Authority().authority()) {
    return "&tls_ca=" + file.string();
  }
  static auto IsACipher() { return AllOf(Not(""), Not(HasSubstr("error: "))); }
  /// The cipher of a connection; "" in plaintext, the error if there is no connection.
  static std::string CipherOf(const std::string& url) {
    Connection connection({.url = url, .connect_timeout = 10s, .statement_timeout = 10s});
    Answer answer = connection.Run("SHOW SESSION STATUS LIKE 'Ssl_cipher'");
    if (!answer.status.ok()) return "error: " + answer.status.error().message;
    return answer.results.at(0).Next() ? std::string(answer.results[0].Text(1)) : "";
  }
};

using Kinds = ::testing::Types<test::MariadbServer, test::MysqlServer, test::Mysql8Server>;
TYPED_TEST_SUITE(MysqlConnectionTest, Kinds);

TYPED_TEST(MysqlConnectionTest, WithoutTlsNobodyWhoRequiresItIsConnected) {
  const std::string url = this->Plain().tcp_url();
  EXPECT_EQ(this->CipherOf(url), "");
  for (const char* options : {"?tls=required", "?tls=insecure-no-verify"}) {
    EXPECT_THAT(this->CipherOf(url + options), HasSubstr("error: ")) << options;
    EXPECT_THAT(this->CipherOf(url + options + this->Ca()), HasSubstr("error: ")) << options;
  }
}

TYPED_TEST(MysqlConnectionTest, RequiredMeansAVerifiedChainAndName) {
  const std::string url = this->Secure().tcp_url();
  this->ShowNow(this->Authority().Issue("localhost", "right"), this->Authority().authority());
  EXPECT_THAT(this->CipherOf(url + "?tls=required" + this->Ca()), this->IsACipher());
  // The system's authorities do not know ours, nor does an unrelated authority.
  const auto stranger = this->Authority().SelfSigned("localhost", "stranger");
  EXPECT_THAT(this->CipherOf(url + "?tls=required"), HasSubstr("error: "));
  EXPECT_THAT(this->CipherOf(url + "?tls=required" + this->Ca(stranger.certificate)),
              HasSubstr("error: "));
  EXPECT_THAT(this->CipherOf(url + "?tls=insecure-no-verify"), this->IsACipher());
}

TYPED_TEST(MysqlConnectionTest, ACertificateForAnotherNameIsRefused) {
  const auto other = this->Authority().SelfSigned("elsewhere.example", "other");
  const std::string url = this->Secure().tcp_url();
  this->ShowNow(other, other.certificate);
  EXPECT_THAT(this->CipherOf(url + "?tls=required" + this->Ca(other.certificate)),
              HasSubstr("error: "));
  EXPECT_THAT(this->CipherOf(url + "?tls=insecure-no-verify"), this->IsACipher());
}

TYPED_TEST(MysqlConnectionTest, OfTwoServersThatAcceptWritesNeitherIsUsed) {
  const std::string first = "127.0.0.1:" + std::to_string(this->Plain().port());
  const std::string second = "127.0.0.1:" + std::to_string(this->Secure().port());
  Connection connection({.url = "mysql://node@" + first + "," + second + "/weir"});
  const Answer refused = connection.Run("SELECT 1");
  ASSERT_FALSE(refused.status.ok());
  EXPECT_EQ(refused.status.error().code, Code::kUnavailable);
  EXPECT_THAT(refused.status.error().message, HasSubstr(first + " and " + second));
  this->Secure().Query("SET GLOBAL read_only = 1");
  EXPECT_TRUE(test::WaitUntil([&] { return connection.Run("SELECT 1").status.ok(); }));
  this->Secure().Query("SET GLOBAL read_only = 0");
  // Two addresses of one server count as one.
  Connection twice({.url = "mysql://node@" + first + "," + first + "/weir"});
  EXPECT_TRUE(twice.Run("SELECT 1").status.ok());
}

TYPED_TEST(MysqlConnectionTest, AnIdleTransactionLosesItsLocks) {
  const std::string url = this->Plain().tcp_url();
  this->Plain().Query(
      "DROP TABLE IF EXISTS held; CREATE TABLE held(id INT PRIMARY KEY); "
      "INSERT INTO held VALUES (1)");
  Connection sleeper({.url = url, .limits = {.idle_transaction = 1s}});
  ASSERT_TRUE(sleeper.Ready().status.ok());
  const std::string lock = ";SELECT id FROM held WHERE id = 1 FOR UPDATE";
  ASSERT_TRUE(sleeper.Run(std::string(sleeper.begin()) + lock).status.ok());
  const std::uint64_t session = sleeper.session();
  Connection other(
      {.url = url, .statement_timeout = 20s, .limits = {.lock_wait = 15s, .statement = 15s}});
  ASSERT_TRUE(other.Ready().status.ok());
  const Answer had = other.Run(std::string(other.begin()) + lock);
  EXPECT_TRUE(had.status.ok()) << had.status.error().message;
  EXPECT_FALSE(sleeper.Run("SELECT 1", session).status.ok());
  EXPECT_TRUE(sleeper.Run("SELECT 1").status.ok());  // in a separate session
}

TYPED_TEST(MysqlConnectionTest, AConnectionOutsideOfATransactionMayIdle) {
  Connection connection({.url = this->Plain().tcp_url(), .limits = {.idle_transaction = 1s}});
  ASSERT_TRUE(connection.Ready().status.ok());
  for (const std::string_view end : {connection.commit(), connection.rollback()}) {
    ASSERT_TRUE(connection.Run(std::string(connection.begin()) + ";SELECT 1").status.ok());
    ASSERT_TRUE(connection.Run(end, connection.session()).status.ok());
    const std::uint64_t session = connection.session();
    std::this_thread::sleep_for(2s);  // twice the time that a transaction may be idle
    EXPECT_TRUE(connection.Run("SELECT 1", session).status.ok());
  }
}

template <typename Server>
class MysqlPasswords : public ::testing::Test {};
using Mysqls = ::testing::Types<test::MysqlServer, test::Mysql8Server>;
TYPED_TEST_SUITE(MysqlPasswords, Mysqls);

TYPED_TEST(MysqlPasswords, CachingSha2WorksWithAndWithoutTls) {
  if (!test::AbsenceOf<TypeParam>().empty()) GTEST_SKIP() << test::AbsenceOf<TypeParam>();
  TypeParam server;
  // A separate user each: the server caches successful logins.
  const auto run_as = [&](const std::string& user, const std::string& password,
                          const std::string& options) {
    server.Query("CREATE USER " + user +
                 "@'%' IDENTIFIED WITH caching_sha2_password BY 'secret'; GRANT ALL ON weir.* TO " +
                 user + "@'%'");
    const std::string url = "mysql://" + user + ":" + password +
                            "@127.0.0.1:" + std::to_string(server.port()) + "/weir" + options;
    Connection connection({.url = url, .connect_timeout = 10s, .statement_timeout = 10s});
    return connection.Run("SELECT 1").status;
  };
  EXPECT_TRUE(run_as("with_tls", "secret", "?tls=insecure-no-verify").ok());
  EXPECT_TRUE(run_as("with_rsa", "secret", "").ok());
  for (const char* options : {"?tls=insecure-no-verify", ""}) {
    const Status refused = run_as(std::string("wrong") + (*options == 0 ? "1" : "2"), "x", options);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, Code::kPermissionDenied) << refused.error().message;
  }
}

}  // namespace
}  // namespace weir::mysql
