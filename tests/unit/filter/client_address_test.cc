#include "filter/client_address.h"

#include <gtest/gtest.h>

namespace weir::filter {
namespace {

std::string Resolve(std::string_view peer, const std::vector<std::string>& lines,
                    const std::vector<std::string>& trusted = {"10.0.0.0/8", "::1"}) {
  const auto networks = ParseNetworks(trusted);
  const NthValue nth = [&](std::size_t n) -> std::optional<std::string_view> {
    if (n >= lines.size()) return std::nullopt;
    return lines[n];
  };
  return ResolveClient(*IpAddress::Parse(peer), nth, *networks).ToString();
}

TEST(ResolveClient, IgnoresForwardedForOfAStranger) {
  EXPECT_EQ(Resolve("192.0.2.9", {"198.51.100.1"}), "192.0.2.9");
  EXPECT_EQ(Resolve("192.0.2.9", {"198.51.100.1"}, {}), "192.0.2.9");
}

TEST(ResolveClient, BelievesATrustedProxy) {
  EXPECT_EQ(Resolve("10.0.0.1", {"198.51.100.1"}), "198.51.100.1");
}

TEST(ResolveClient, TakesTheRightmostUntrustedHop) {
  // 1.1.1.1 is forged by the client; 198.51.100.1 was written by our own 10.0.0.2.
  EXPECT_EQ(Resolve("10.0.0.1", {"1.1.1.1, 198.51.100.1, 10.0.0.2"}), "198.51.100.1");
}

TEST(ResolveClient, ReadsSeveralLinesAsOneList) {
  EXPECT_EQ(Resolve("10.0.0.1", {"1.1.1.1", "198.51.100.1", "10.0.0.2"}), "198.51.100.1");
}

TEST(ResolveClient, TakesTheFirstHopWhenAllAreTrusted) {
  EXPECT_EQ(Resolve("10.0.0.1", {"10.0.0.3, 10.0.0.2"}), "10.0.0.3");
}

TEST(ResolveClient, FallsBackToThePeerWithoutTheHeader) {
  EXPECT_EQ(Resolve("10.0.0.1", {}), "10.0.0.1");
}

TEST(ResolveClient, StopsAtTheLastTrustedHopBeforeGarbage) {
  EXPECT_EQ(Resolve("10.0.0.1", {"198.51.100.1, unknown, 10.0.0.2"}), "10.0.0.2");
  EXPECT_EQ(Resolve("10.0.0.1", {"198.51.100.1,"}), "10.0.0.1");
}

TEST(ResolveClient, TakesIpv6AndMappedHops) {
  EXPECT_EQ(Resolve("::1", {"[2001:db8::7]:80"}), "2001:db8::7");
  EXPECT_EQ(Resolve("::ffff:10.0.0.1", {"::ffff:198.51.100.1"}), "198.51.100.1");
}

TEST(ResolveClient, NoNumberOfLinesOfTheClientsHidesTheProxys) {
  for (const std::size_t own : {1U, 31U, 32U, 33U, 63U, 64U, 65U, 127U, 1000U}) {
    std::vector<std::string> lines(own, "1.1.1.1");
    lines.emplace_back("198.51.100.1");  // what the trusted proxy saw
    lines.emplace_back("10.0.0.2");
    EXPECT_EQ(Resolve("10.0.0.1", lines), "198.51.100.1") << own;
  }
}

// 70 hops of our own, the first of them 10.0.1.1: the walk ends with the 64th from the right.
TEST(ResolveClient, WalksNoMoreThan64Hops) {
  std::string line;
  for (int i = 1; i <= 70; ++i) line += (i > 1 ? "," : "") + ("10.0.1." + std::to_string(i));
  EXPECT_EQ(Resolve("10.0.0.1", {"198.51.100.1," + line}), "10.0.1.7");
}

}  // namespace
}  // namespace weir::filter
