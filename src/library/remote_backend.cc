// Another Weir in place of a database.

#include <algorithm>
#include <utility>

#include "library/sql_backend.h"
#include "store/remote/remote_store.h"
#include "store/remote/url.h"

namespace weir::library {
namespace {

class RemoteBackend final : public Backend {
 public:
  RemoteBackend(const BackendOptions& options, std::string host) : host_(std::move(host)) {
    // Later than the guard abandons a call: a short delay must not cost a connection.
    const auto patience = std::max(2 * options.timeout, std::chrono::milliseconds(500));
    options_.url = options.url;
    if (options.connections != 0) options_.connections = options.connections;
    options_.connect_timeout = patience;
    options_.command_timeout = patience;
  }

  std::unique_ptr<store::Store> NewStore(boost::asio::io_context& io) override {
    // The URL was parsed before, and nothing else can fail here.
    return std::move(*store::remote::MakeStore(io, options_));
  }
  Result<store::KeyPage> ReadKeys(const store::KeyQuery&) const override {
    return Error{Code::kUnimplemented,
                 "the keys are in another Weir; `weir keys` (GET /admin/metrics) lists them there"};
  }
  std::vector<std::string> hosts() const override { return {host_}; }

 private:
  store::remote::Options options_;
  const std::string host_;
};

}  // namespace

Result<std::unique_ptr<Backend>> OpenRemoteBackend(BackendOptions options, store::guard::Guard&) {
  const auto address = store::remote::ParseUrl(options.url);
  if (!address.ok()) return address.error();
  return std::unique_ptr<Backend>(
      std::make_unique<RemoteBackend>(options, address->endpoints.front().host));
}

}  // namespace weir::library
