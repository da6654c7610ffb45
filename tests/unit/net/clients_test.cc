#include "net/clients.h"

#include <gtest/gtest.h>

namespace weir::net {
namespace {

std::optional<Clients::Entry*> Enter(Clients& clients, const char* address) {
  return clients.Enter(IpAddress::Parse(address));
}

TEST(Clients, CountEachAddressAndEachNetworkOfIpv6) {
  Clients clients({.most = 1, .exempt = {}});
  const auto first = Enter(clients, "192.0.2.1");
  ASSERT_TRUE(first.has_value());
  EXPECT_FALSE(Enter(clients, "192.0.2.1").has_value());
  EXPECT_FALSE(Enter(clients, "::ffff:192.0.2.1").has_value()) << "the same address";
  EXPECT_TRUE(Enter(clients, "192.0.2.2").has_value());
  EXPECT_TRUE(Enter(clients, "2001:db8::1").has_value());
  EXPECT_FALSE(Enter(clients, "2001:db8::ffff").has_value()) << "the same network";
  EXPECT_TRUE(Enter(clients, "2001:db8:0:1::1").has_value());
  clients.Leave(*first);
  EXPECT_TRUE(Enter(clients, "192.0.2.1").has_value());
}

TEST(Clients, ForgetWhoHasLeft) {
  Clients clients({.most = 2, .exempt = {}});
  const auto first = Enter(clients, "192.0.2.1");
  const auto second = Enter(clients, "192.0.2.1");
  ASSERT_TRUE(first && second);
  EXPECT_EQ(*first, *second);
  EXPECT_EQ(clients.size(), 1U);
  clients.Leave(*first);
  clients.Leave(*second);
  EXPECT_EQ(clients.size(), 0U);
}

TEST(Clients, DoNotCountThoseWhoAreExemptOrNobody) {
  Clients proxies({.most = 1, .exempt = {*IpNetwork::Parse("10.0.0.0/8")}});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Enter(proxies, "10.1.2.3"), nullptr);
  EXPECT_EQ(proxies.Enter(std::nullopt), nullptr);
  proxies.Leave(nullptr);
  Clients all({});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Enter(all, "192.0.2.1"), nullptr);
  EXPECT_EQ(all.size(), 0U);
}

}  // namespace
}  // namespace weir::net
