#include "net/clients.h"

namespace weir::net {

std::optional<Clients::Entry*> Clients::Enter(const std::optional<IpAddress>& address) {
  if (!counts() || !address || ContainsAddress(bound_.exempt, *address)) return nullptr;
  const auto [entry, fresh] = open_.try_emplace(ClientKey(*address), 0);
  if (entry->second >= bound_.most) return std::nullopt;
  ++entry->second;
  return &*entry;
}

void Clients::Leave(Entry* entry) {
  if (entry != nullptr && --entry->second == 0) open_.erase(open_.find(entry->first));
}

}  // namespace weir::net
