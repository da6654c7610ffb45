// Settings of the control plane that provides policies.

#include "config/settings.h"
#include "config/values.h"

namespace weir::config {
namespace {

Status SetServer(Config& config, Texts texts) {
  std::string text = texts[0];
  if (text.empty() || text == "off") {
    config.xds.server.clear();
    return {};
  }
  while (text.ends_with('/')) text.pop_back();
  for (const std::string_view scheme : {"grpc://", "grpcs://"}) {
    const bool ours = text.starts_with(scheme) && text.size() > scheme.size();
    if (!ours || text.find('/', scheme.size()) != std::string::npos) continue;
    config.xds.server = text;
    return {};
  }
  return Expected("grpc:// or grpcs:// with a host and port, or off", texts[0]);
}

// clang-format off
const Setting kXdsSettings[] = {
    {{"xds.server", "--xds-server", "Control plane that provides policies: grpc://host:port, grpcs://host:port, or off"},
     SetServer},
    {{"xds.node_id", "", "This node's ID for the control plane"},
     [](Config& c, Texts t) -> Status {
       if (t[0].empty()) return Expected("an id", t[0]);
       c.xds.node_id = t[0];
       return {};
     }},
    {{"xds.headers", "", "Header fields for the control plane, each 'name: value'", true},
     [](Config& c, Texts t) { return SetHeaderFields(c.xds.headers, t); }},
    {{"xds.tls_ca", "", "PEM file with the CA certificates to trust for the control plane"},
     [](Config& c, Texts t) -> Status { c.xds.tls_ca = t[0]; return {}; }},
    {{"xds.tls_cert", "", "PEM file with the client certificate for the control plane"},
     [](Config& c, Texts t) -> Status { c.xds.tls_cert = t[0]; return {}; }},
    {{"xds.tls_key", "", "PEM file with its private key"},
     [](Config& c, Texts t) -> Status { c.xds.tls_key = t[0]; return {}; }},
};
// clang-format on

}  // namespace

std::span<const Setting> XdsSettings() { return kXdsSettings; }

}  // namespace weir::config
