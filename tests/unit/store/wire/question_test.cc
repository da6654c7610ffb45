#include "store/wire/question.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace weir::store::wire {
namespace {

using namespace std::chrono_literals;

const std::vector<Quota>& Quotas() {
  static const std::vector<Quota> quotas = {
      *Quota::TokenBucket(100, 7, 3s),
      *Quota::FixedWindow(kMaxLimit, kMaxWindow),
      *Quota::SlidingLog(5, 1s),
      *Quota::SlidingCounter(50, 10s, 7),
      *Quota::Concurrency(3, 30s),
      *Quota::AnchoredWindow(9, 1min),
      *Quota::TokenBucket(1'000'000, 1, 1min),
  };
  return quotas;
}

std::string Written(Application& application) {
  Application* const one = &application;
  return WriteQuestion({&one, 1});
}

TEST(Question, IsReadAsItWasWritten) {
  std::vector<Charge> charges;
  std::vector<Nanos> stamps;
  const std::int64_t costs[] = {0,
                                1,
                                -1,
                                std::numeric_limits<std::int64_t>::max(),
                                std::numeric_limits<std::int64_t>::min(),
                                300,
                                -300};
  for (std::size_t i = 0; i < Quotas().size(); ++i) {
    charges.push_back({i == 0 ? "" : "k\r\n", costs[i], &Quotas()[i]});
    stamps.push_back(costs[i] / 2);
  }
  Application settle;
  settle.op = Op::kSettle;
  settle.lease = -5;
  settle.charges = charges;
  settle.stamps = stamps;
  Application lease;
  lease.op = Op::kLease;
  lease.charges = std::span(charges).first(1);
  lease.region = {2'000'000'000, 250'000'000};
  Application* const both[] = {&settle, &lease};
  const auto read = Question::Read(WriteQuestion(both));
  ASSERT_TRUE(read.ok()) << read.error().message;
  const std::span<Application> got = (*read)->applications();
  ASSERT_EQ(got.size(), 2U);
  EXPECT_EQ(got[0].op, Op::kSettle);
  EXPECT_EQ(got[0].lease, -5);
  EXPECT_EQ(got[0].region, RegionTerms());
  ASSERT_EQ(got[0].charges.size(), charges.size());
  ASSERT_EQ(got[0].decisions.size(), charges.size());
  for (std::size_t i = 0; i < charges.size(); ++i) {
    EXPECT_EQ(got[0].charges[i].key, charges[i].key);
    EXPECT_EQ(got[0].charges[i].cost, charges[i].cost);
    EXPECT_EQ(*got[0].charges[i].quota, *charges[i].quota) << charges[i].quota->ToString();
    EXPECT_EQ(got[0].stamps[i], stamps[i]);
  }
  EXPECT_EQ(got[1].region, lease.region);
  EXPECT_EQ((*read)->charges(), charges.size() + 1);
}

TEST(Question, IsNeitherShorterNorLongerThanItWasWritten) {
  const Charge charge{"key", 3, &Quotas()[3]};
  Application application;
  application.charges = {&charge, 1};
  const std::string bytes = Written(application);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(Question::Read(bytes.substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(Question::Read(bytes + '\0').ok());
  EXPECT_TRUE(Question::Read(bytes).ok());
  EXPECT_LE(bytes.size(), SizeOf(application) + 3);
}

TEST(Question, OfAnotherVersionSaysSo) {
  const Charge charge{"key", 3, &Quotas()[3]};
  Application application;
  application.charges = {&charge, 1};
  std::string bytes = Written(application);
  bytes[0] = 2;
  const auto read = Question::Read(bytes);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().message, "unsupported version of WEIR.APPLY; this service has 1");
}

// version 1, one application of one charge: operation, lease 0, one charge, key "k", a fixed window
// (algorithm 1) of limit 1 and 1 ns, cost 1 as zigzag 2.
std::string ByHand(std::uint8_t op, const std::string& after_lease = "") {
  std::string bytes = {1, 1, 1, static_cast<char>(op), 0};
  return bytes + after_lease + std::string{1, 1, 'k', 1, 1, 1, 2};
}

TEST(Question, HasTheFormatThatTheDocumentationGives) {
  const auto read = Question::Read(ByHand(0));
  ASSERT_TRUE(read.ok());
  const Application& application = (*read)->applications()[0];
  EXPECT_EQ(application.op, Op::kCharge);
  EXPECT_EQ(application.charges[0].key, "k");
  EXPECT_EQ(application.charges[0].cost, 1);
  EXPECT_EQ(*application.charges[0].quota, *Quota::FixedWindow(1, 1ns));
  // With bit 7 of the operation: the terms of the region, here 9 ns and 2 ns.
  const auto regional = Question::Read(ByHand(0x80, {9, 2}));
  ASSERT_TRUE(regional.ok());
  EXPECT_EQ((*regional)->applications()[0].region, (RegionTerms{9, 2}));
}

TEST(Question, WhatNoWeirWritesIsRefused) {
  EXPECT_FALSE(Question::Read(ByHand(9)).ok()) << "no such operation";
  EXPECT_FALSE(Question::Read(ByHand(0x80, {2, 2})).ok()) << "lent for as long as it is kept";
  EXPECT_FALSE(Question::Read(ByHand(0x80, {2, 0})).ok()) << "lent for no time";
  EXPECT_FALSE(Question::Read(ByHand(0x81, {9, 2})).ok()) << "a region cannot peek";
  std::string none = {1, 1, 0, 0, 0, 0};
  EXPECT_FALSE(Question::Read(none).ok()) << "no charge";
  // A limit of 0: no quota.
  EXPECT_FALSE(Question::Read(std::string{1, 1, 1, 0, 0, 1, 1, 'k', 1, 0, 1, 2}).ok());
  // 100 applications announced in a few bytes.
  EXPECT_FALSE(Question::Read(std::string{1, 100, 100, 0, 0}).ok());
  // Two charges announced, one present; one announced, two present.
  EXPECT_FALSE(Question::Read(std::string{1, 1, 2, 0, 0, 1, 1, 'k', 1, 1, 1, 2}).ok());
}

TEST(Question, ManyChargesOfOneOperationThatTakesOneAreRefused) {
  const std::vector<Charge> charges(2, {"key", 1, &Quotas()[0]});
  for (const Op op : {Op::kLease, Op::kReturn, Op::kRelease}) {
    Application application;
    application.op = op;
    application.charges = charges;
    EXPECT_FALSE(Question::Read(Written(application)).ok());
  }
}

TEST(Question, NobodyLeasesLessThanNothing) {
  for (const std::int64_t cost : {std::numeric_limits<std::int64_t>::min(), std::int64_t{-1}}) {
    const Charge charge{"key", cost, &Quotas()[0]};
    Application application;
    application.op = Op::kLease;
    application.charges = {&charge, 1};
    EXPECT_FALSE(Question::Read(Written(application)).ok());
    application.region = {1000, 100};
    EXPECT_FALSE(Question::Read(Written(application)).ok());
  }
}

TEST(Question, SaysWhetherAChargeMayBeGivenBack) {
  const Charge charge{"key", 1, &Quotas()[0]};
  Application application;
  application.charges = {&charge, 1};
  application.returnable = true;
  const auto read = Question::Read(Written(application));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ((*read)->applications()[0].op, Op::kCharge);
  EXPECT_TRUE((*read)->applications()[0].returnable);
  std::string other = Written(application);
  other[3] = static_cast<char>(other[3] | static_cast<char>(Op::kPeek));
  EXPECT_FALSE(Question::Read(other).ok());
}

TEST(Question, IsBounded) {
  EXPECT_FALSE(Question::Read(std::string(kMaxBytes + 1, '\1')).ok());
  const std::string key(kMaxKeyBytes + 1, 'x');
  const Charge charge{key, 1, &Quotas()[0]};
  Application application;
  application.charges = {&charge, 1};
  EXPECT_FALSE(Question::Read(Written(application)).ok());
}

TEST(Question, OnlyTimeWindowsAreLent) {
  for (const Quota& quota : Quotas()) {
    const Charge charge{"key", 1, &quota};
    Application application;
    application.op = Op::kLease;
    application.charges = {&charge, 1};
    application.region = {1000, 100};
    const bool lent = quota.algorithm() != Algorithm::kConcurrency &&
                      quota.algorithm() != Algorithm::kAnchoredWindow;
    EXPECT_EQ(Question::Read(Written(application)).ok(), lent) << quota.ToString();
  }
}

}  // namespace
}  // namespace weir::store::wire
