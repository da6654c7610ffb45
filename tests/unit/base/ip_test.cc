#include "base/ip.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

std::string Canonical(std::string_view text) {
  const auto address = IpAddress::Parse(text);
  return address ? address->ToString() : "invalid";
}

TEST(IpAddress, HasOneTextPerAddress) {
  EXPECT_EQ(Canonical("192.0.2.1"), "192.0.2.1");
  EXPECT_EQ(Canonical("2001:0DB8:0000:0000:0000:0000:0000:0001"), "2001:db8::1");
  EXPECT_EQ(Canonical("::1"), "::1");
}

TEST(IpAddress, UnmapsIpv4) {
  EXPECT_EQ(Canonical("::ffff:192.0.2.1"), "192.0.2.1");
  EXPECT_EQ(Canonical("::ffff:c000:0201"), "192.0.2.1");
  EXPECT_TRUE(IpAddress::Parse("::ffff:192.0.2.1")->is_v4());
}

TEST(IpAddress, DropsTheZone) { EXPECT_EQ(Canonical("fe80::1%eth0"), "fe80::1"); }

TEST(IpAddress, RefusesWhatIsNoAddress) {
  for (const std::string_view text :
       {"", "localhost", "1.2.3", "1.2.3.4.5", "256.1.1.1", "1.2.3.4x", ":::", "1.2.3.4 ",
        "2001:db8::1::2", "1:::::::::::::::::::::::::::::::::::::::::::::::::::::::::::"}) {
    EXPECT_EQ(Canonical(text), "invalid") << text;
  }
  EXPECT_EQ(Canonical(std::string_view("1.2.3.4\0", 8)), "invalid");
}

TEST(IpAddress, TakesHopsAsProxiesWriteThem) {
  EXPECT_EQ(IpAddress::ParseHop(" 192.0.2.1 ")->ToString(), "192.0.2.1");
  EXPECT_EQ(IpAddress::ParseHop("192.0.2.1:4711")->ToString(), "192.0.2.1");
  EXPECT_EQ(IpAddress::ParseHop("[2001:db8::1]:4711")->ToString(), "2001:db8::1");
  EXPECT_EQ(IpAddress::ParseHop("\"[2001:db8::1]\"")->ToString(), "2001:db8::1");
  EXPECT_EQ(IpAddress::ParseHop("2001:db8::1")->ToString(), "2001:db8::1");
  EXPECT_FALSE(IpAddress::ParseHop("unknown"));
  EXPECT_FALSE(IpAddress::ParseHop("[2001:db8::1"));
}

TEST(IpAddress, MasksInsideAByte) {
  // 203 = 0b11001011; its first three bits are 0b110 = 192.
  EXPECT_EQ(IpAddress::Parse("203.1.2.3")->Masked(3).ToString(), "192.0.0.0");
  EXPECT_EQ(IpAddress::Parse("203.1.2.3")->Masked(0).ToString(), "0.0.0.0");
  EXPECT_EQ(IpAddress::Parse("203.1.2.3")->Masked(32).ToString(), "203.1.2.3");
  EXPECT_EQ(IpAddress::Parse("2001:db8:1:2:3:4:5:6")->Masked(64).ToString(), "2001:db8:1:2::");
}

TEST(IpNetwork, ContainsItsAddressesAndNoOthers) {
  const auto network = IpNetwork::Parse("10.1.0.0/16");
  ASSERT_TRUE(network);
  EXPECT_TRUE(network->Contains(*IpAddress::Parse("10.1.255.255")));
  EXPECT_TRUE(network->Contains(*IpAddress::Parse("::ffff:10.1.0.1")));
  EXPECT_FALSE(network->Contains(*IpAddress::Parse("10.2.0.0")));
  EXPECT_FALSE(network->Contains(*IpAddress::Parse("a01::")));  // the same first bytes, but IPv6
}

TEST(IpNetwork, TakesASingleAddress) {
  const auto network = IpNetwork::Parse("::1");
  ASSERT_TRUE(network);
  EXPECT_TRUE(network->Contains(*IpAddress::Parse("::1")));
  EXPECT_FALSE(network->Contains(*IpAddress::Parse("::2")));
}

TEST(IpNetwork, IgnoresBitsBeyondThePrefix) {
  EXPECT_TRUE(IpNetwork::Parse("10.1.2.3/8")->Contains(*IpAddress::Parse("10.9.9.9")));
}

TEST(IpNetwork, RefusesBadPrefixes) {
  for (const std::string_view text :
       {"10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/", "10.0.0.0/8x", "::/129", "nowhere/8"}) {
    EXPECT_FALSE(IpNetwork::Parse(text)) << text;
  }
}

TEST(ParseNetworks, NamesTheWrongOne) {
  const std::vector<std::string> texts = {"10.0.0.0/8", "10.0.0.0/99"};
  const auto networks = ParseNetworks(texts);
  ASSERT_FALSE(networks);
  EXPECT_NE(networks.error().message.find("10.0.0.0/99"), std::string::npos);
}

TEST(ClientKey, GroupsIpv6By64) {
  EXPECT_EQ(ClientKey(*IpAddress::Parse("2001:db8:1:2:aaaa::1")), "2001:db8:1:2::/64");
  EXPECT_EQ(ClientKey(*IpAddress::Parse("2001:db8:1:2:bbbb::9")), "2001:db8:1:2::/64");
  EXPECT_EQ(ClientKey(*IpAddress::Parse("2001:db8:1:3::1")), "2001:db8:1:3::/64");
  EXPECT_EQ(ClientKey(*IpAddress::Parse("192.0.2.1")), "192.0.2.1");
}

TEST(ClientKey, GroupsAsConfigured) {
  const IpGrouping grouping{.v4_prefix = 24, .v6_prefix = 128};
  EXPECT_EQ(ClientKey(*IpAddress::Parse("192.0.2.77"), grouping), "192.0.2.0/24");
  EXPECT_EQ(ClientKey(*IpAddress::Parse("2001:db8::77"), grouping), "2001:db8::77");
}

}  // namespace
}  // namespace weir
