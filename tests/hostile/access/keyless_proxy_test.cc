// Without keys the admin API is open to this machine only. Behind a proxy on this machine every
// caller has a loopback address, so requests through a proxy are refused.

#include "e2e/service/fixture.h"
#include "support/nginx_server.h"
#include "support/tcp_connection.h"

namespace weir::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::string_view kPolicy = R"({"key":"k","type":"TOKEN_BUCKET","capacity":1})";

class KeylessProxy : public ServiceTest {};

TEST_F(KeylessProxy, TheSameMachineNeedsNoKey) {
  Serve();
  HttpClient client = Client();
  EXPECT_EQ(client.Get("/admin/status").status, 200);
  EXPECT_EQ(client.Post("/admin/policies", kPolicy, {{"Host", "localhost:8080"}}).status, 201);
}

TEST_F(KeylessProxy, WhatAProxyAddsIsASign) {
  Serve();
  HttpClient client = Client();
  for (const char* field : {"X-Forwarded-For", "x-forwarded-host", "X-Forwarded-Proto",
                            "X-Forwarded-Port", "Forwarded", "Via", "X-Real-IP", "CF-Connecting-IP",
                            "True-Client-IP", "X-Original-URI", "X-Envoy-External-Address"}) {
    const HttpHeaders headers = {{"Host", "localhost"}, {field, "198.51.100.7"}};
    const HttpResponse refused = client.Post("/admin/policies", kPolicy, headers);
    EXPECT_EQ(refused.status, 403) << field;
    EXPECT_THAT(refused.body, HasSubstr("through a proxy")) << field;
    EXPECT_EQ(client.Get("/admin/status", headers).status, 403) << field;
    // Checks are for any proxy in front.
    EXPECT_EQ(client.Post("/v1/check", R"({"key":"a"})", headers).status, 200) << field;
  }
  EXPECT_EQ(client.Get("/admin/policies/k").status, 404);
}

TEST_F(KeylessProxy, AnNginxThatSaysNothingSpeaksHttp10) {
  Serve();
  TcpConnection raw(port_);
  raw.Send("GET /admin/status HTTP/1.0\r\nHost: localhost:8080\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(raw.ReadAll(), StartsWith("HTTP/1.1 403 "));
}

TEST_F(KeylessProxy, ARealNginxWithItsDefaultsDoesNotOpenIt) {
  Serve();
  const NginxServer nginx("location / { proxy_pass http://localhost:" + std::to_string(port_) +
                          "; }");
  HttpClient outside(nginx.port());
  EXPECT_EQ(outside.Get("/healthz").status, 200);
  EXPECT_EQ(outside.Post("/admin/policies", kPolicy).status, 403);
  EXPECT_EQ(outside.Get("/admin/status").status, 403);
  EXPECT_EQ(Client().Get("/admin/policies/k").status, 404);
}

TEST_F(KeylessProxy, CanBeSwitchedOff) {
  Serve({"--config", dir_.Write("weir.yaml", "admin: {keyless: off}\n").string()});
  HttpClient client = Client();
  EXPECT_EQ(client.Get("/admin/status").status, 403);
  EXPECT_EQ(client.Get("/healthz").status, 200);
}

}  // namespace
}  // namespace weir::test
