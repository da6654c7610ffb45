// A program with the library and a service on the same store.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "support/and_mysql.h"
#include "support/http_client.h"
#include "support/store_server.h"
#include "support/temp_dir.h"
#include "support/weir_process.h"
#include "weir/shared_limiter.h"

namespace weir {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class LibraryTest : public ::testing::TestWithParam<std::string> {};

TEST_P(LibraryTest, SharesTheServicesBucketsOnlyIfToldTo) {
  const auto server = test::StoreServer::Make(GetParam());
  test::TempDir dir;
  test::WeirProcess weir({"serve", "--http", "127.0.0.1:0", "--grpc", "off", "--resp", "off",
                          "--store", server->url(), "--store-timeout", "5s", "--data", dir.path()});
  test::HttpClient client(weir.Port("http"));
  // The default policy: 100 at once.
  EXPECT_THAT(client.Post("/v1/check", R"({"key":"u","cost":60})").body,
              HasSubstr(R"("remaining":40)"));
  const Quota quota = *Quota::TokenBucket(100, 10, 1s);
  auto apart = SharedLimiter::Open(server->url(), {.timeout = 5s});
  ASSERT_TRUE(apart.ok()) << apart.error().message;
  EXPECT_TRUE(apart->TryAcquire("key|u", quota, 100)->allowed());
  auto together = SharedLimiter::Open(server->url(), {.timeout = 5s, .prefix = ""});
  ASSERT_TRUE(together.ok()) << together.error().message;
  // At 10 a second it takes 6 s until 40 are a hundred again.
  const Result<Decision> decision = together->TryAcquire("key|u", quota, 40);
  EXPECT_TRUE(decision->allowed());
  EXPECT_LT(decision->remaining, 60);
}

INSTANTIATE_TEST_SUITE_P(Stores, LibraryTest,
                         ::testing::ValuesIn(test::AndMysql({"redis", "postgres", "mariadb"})),
                         [](const auto& store) { return store.param; });

}  // namespace
}  // namespace weir
