#include "access/jwks_source.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <array>
#include <string>

#include "telemetry/log.h"

namespace weir::access {
namespace {

TEST(JwksSource, NoPasswordIsInTheLog) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC | O_NONBLOCK), 0);
  telemetry::ConfigureLog({.fd = pipe[1]});
  Tokens tokens({});
  // Nothing listens there.
  ASSERT_TRUE(
      JwksSource::Open("https://weir:hidden@127.0.0.1:1/keys?token=hidden", "", tokens).ok());
  telemetry::FlushLog();
  telemetry::ConfigureLog({});
  std::array<char, 4096> bytes{};
  const ssize_t size = ::read(pipe[0], bytes.data(), bytes.size());
  ASSERT_GT(size, 0);
  const std::string log(bytes.data(), static_cast<std::size_t>(size));
  EXPECT_THAT(log, ::testing::HasSubstr("127.0.0.1:1"));
  EXPECT_THAT(log, ::testing::Not(::testing::HasSubstr("hidden")));
  ::close(pipe[0]);
  ::close(pipe[1]);
}

// They would be taken for an issuer that is down, and asked again for ever.
TEST(JwksSource, AFileThatIsMissingIsAMistake) {
  Tokens tokens({});
  const auto keys = JwksSource::Open("/no/such/keys.json", "", tokens);
  ASSERT_FALSE(keys.ok());
  EXPECT_EQ(keys.error().code, Code::kInvalidArgument);
  EXPECT_EQ(keys.error().message,
            "oidc.jwks: /no/such/keys.json: cannot be read: No such file or directory");
  const auto authority = JwksSource::Open("https://127.0.0.1:1/keys", "/no/such/ca.pem", tokens);
  ASSERT_FALSE(authority.ok());
  EXPECT_EQ(authority.error().code, Code::kInvalidArgument);
  EXPECT_EQ(authority.error().message,
            "oidc.jwks_ca: /no/such/ca.pem: cannot be read: No such file or directory");
}

}  // namespace
}  // namespace weir::access
