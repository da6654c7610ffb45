// The gRPC endpoint on the memory store with the policies of a file, for clients in other
// languages: test_server POLICIES [CERTIFICATE KEY]. Prints `listening grpc <address>` and serves
// until it is killed.

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "limiter/policy_limiter.h"
#include "net/listener.h"
#include "net/reactor_pool.h"
#include "net/tls.h"
#include "policy/policy_file.h"
#include "policy/policy_set.h"
#include "service/grpc_door.h"
#include "store/memory/memory_store.h"
#include "weir/engine.h"

int main(int argc, char** argv) {
  if (argc != 2 && argc != 4) return 2;
  std::vector<weir::policy::yaml::Problem> problems;
  auto definitions = weir::policy::LoadPolicyFile(argv[1], problems);
  std::fputs(weir::policy::yaml::ToString(problems).c_str(), stderr);
  weir::policy::PolicyIds ids;
  const auto set = weir::policy::PolicySet::Compile(std::move(definitions),
                                                    {weir::policy::DefaultPolicy(), 0.1}, ids);
  if (!problems.empty() || !set.ok()) return 1;
  const weir::policy::LivePolicies live(*set);
  weir::Engine engine(*weir::Quota::TokenBucket(1, 1));
  weir::limiter::Shared shared(live, ids, {});
  weir::limiter::PolicyLimiter limiter(shared,
                                       std::make_unique<weir::store::memory::MemoryStore>(engine));
  weir::service::GrpcDoorOptions options;
  if (argc == 4) {
    auto tls = weir::net::TlsContext::Load({argv[2], argv[3], ""}, {"h2"});
    if (!tls.ok()) return 1;
    options.tls = *tls;
  }
  weir::service::GrpcDoor door(
      1, [&limiter](weir::net::Reactor&) -> weir::limiter::Limiter& { return limiter; },
      std::move(options));
  weir::net::ReactorPool pool({1, 1000});
  const auto endpoint = pool.Listen(door, "127.0.0.1:0");
  if (!endpoint.ok()) return 1;
  pool.Start();
  std::printf("listening grpc %s\n", weir::net::FormatEndpoint(*endpoint).c_str());
  std::fflush(stdout);
  pause();
}
