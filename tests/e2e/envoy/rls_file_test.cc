// deploy/envoy/rls.yaml in a real Envoy, with the policies that docs/guide/recipes.md shows for it.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "support/envoy_server.h"
#include "support/http_client.h"
#include "support/nginx_server.h"
#include "support/paths.h"
#include "support/ports.h"
#include "support/temp_dir.h"
#include "support/weir_process.h"

namespace weir::test {
namespace {

/// The recipe's policies: the block with the domain used in the file.
std::string Policies() {
  const std::string page = ReadFile(SourcePath("docs/guide/recipes.md"));
  const std::size_t domain = page.find("domain: edge");
  EXPECT_NE(domain, std::string::npos);
  return page.substr(domain, page.find("```", domain) - domain);
}

void Replace(std::string& config, std::string_view what, const std::string& with) {
  const std::size_t at = config.find(what);
  ASSERT_NE(at, std::string::npos) << what;
  config.replace(at, what.size(), with);
}

void SetPort(std::string& config, const std::string& from, std::uint16_t to) {
  Replace(config, "port_value: " + from + " ", "port_value: " + std::to_string(to) + " ");
}

TEST(RlsFile, LimitsEachUserAsTheRecipeSays) {
  TempDir folder;
  folder.Write("policies.yaml", Policies());
  WeirProcess weir({"serve", "--http", "off", "--resp", "off", "--grpc", "127.0.0.1:0",
                    "--policies", (folder / "policies.yaml").string(), "--data",
                    folder.path().string()});
  const NginxServer upstream("location / { return 200 ok; }");
  const std::uint16_t port = FreePort();
  std::string config = ReadFile(SourcePath("deploy/envoy/rls.yaml"));
  SetPort(config, "10000", port);
  SetPort(config, "8000", upstream.port());
  SetPort(config, "8081", weir.Port("grpc"));
  Replace(config, "timeout: 0.5s", "timeout: 10s");  // for a busy machine
  const EnvoyServer envoy(config, port);

  HttpClient client(port);
  const auto ask = [&](const std::string& user) {
    return client.Get("/", {{"x-user", user}}).status;
  };
  // Five in any minute: the sixth follows within seconds.
  for (int i = 0; i < 5; ++i) EXPECT_EQ(ask("anna"), 200) << i;
  EXPECT_EQ(ask("anna"), 429);
  EXPECT_EQ(ask("bob"), 200);
  EXPECT_EQ(client.Get("/").status, 200);
  EXPECT_EQ(envoy.log(), "");
}

}  // namespace
}  // namespace weir::test
