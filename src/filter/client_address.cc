#include "filter/client_address.h"

namespace weir::filter {

namespace {

// Nobody has this many proxies in a row; beyond it a request only wants to cost us time.
constexpr std::size_t kMaxLines = 32;
constexpr int kMaxHops = 64;

/// Walks one line from the right. Moves `client` along the trusted hops; true when the walk is
/// over.
bool WalkLine(std::string_view line, std::span<const IpNetwork> trusted, int& hops,
              IpAddress& client) {
  while (true) {
    if (++hops > kMaxHops) return true;
    const auto comma = line.rfind(',');
    const auto hop = IpAddress::ParseHop(comma == line.npos ? line : line.substr(comma + 1));
    if (!hop) return true;
    client = *hop;
    if (!ContainsAddress(trusted, client)) return true;
    if (comma == line.npos) return false;
    line = line.substr(0, comma);
  }
}

}  // namespace

IpAddress ResolveClient(const IpAddress& peer, const NthValue& forwarded_for,
                        std::span<const IpNetwork> trusted) {
  if (!ContainsAddress(trusted, peer)) return peer;
  std::size_t lines = 0;
  while (forwarded_for(lines)) {
    // Reading only the first lines would read what the client wrote and miss what the proxies
    // added.
    if (++lines > kMaxLines) return peer;
  }

  IpAddress client = peer;
  int hops = 0;
  for (std::size_t line = lines; line-- > 0;) {
    if (WalkLine(*forwarded_for(line), trusted, hops, client)) break;
  }
  return client;
}

}  // namespace weir::filter
