#pragma once

// The calls that a LeasingStore has sent to the store behind it, until it has answered.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/lease/leasing_store.h"

namespace weir::store::lease {

inline Error ShuttingDown() { return {Code::kUnavailable, "the service is shutting down"}; }

/// One key's request to the store for permits, or a return of some. Owns all its memory.
struct LeasingStore::Ask {
  std::shared_ptr<LeasingStore*> owner;
  std::string key;
  algorithm::LeaseTerms terms;
  store::Charge charge;
  Decision decision;
  Application application;
  Nanos sent = 0;

  Ask(std::shared_ptr<LeasingStore*> store, std::string_view text,
      const algorithm::LeaseTerms& its_terms, Op op, std::int64_t cost)
      : owner(std::move(store)), key(text), terms(its_terms), charge{key, cost, &terms.quota} {
    application.op = op;
    application.charges = {&charge, 1};
    application.decisions = {&decision, 1};
    if (terms.region > 0) application.region = {terms.region, terms.term};
  }
  Ask(const Ask&) = delete;
  Ask& operator=(const Ask&) = delete;
  ~Ask() = default;
};

/// One key's request for a share of its rate: what is released, what is reserved and what is
/// wanted. Owns all its memory.
struct LeasingStore::ShareAsk {
  std::shared_ptr<LeasingStore*> owner;
  std::string key;
  algorithm::LeaseTerms terms;
  std::string units_key = key + std::string(kUnitsSuffix);
  std::string wants_key = key + std::string(kWantsSuffix);
  Quota units = UnitsQuota(terms.rate);
  Quota wants = WantsQuota(terms.rate);
  static constexpr std::size_t kMost = RateShare::kMostEnded + 3;
  std::array<store::Charge, kMost> charges = {};
  std::array<Decision, kMost> decisions = {};
  std::vector<Application> applications = {};
  Nanos sent = 0;

  ShareAsk(std::shared_ptr<LeasingStore*> store, std::string_view text,
           const algorithm::LeaseTerms& its_terms)
      : owner(std::move(store)), key(text), terms(its_terms) {}
  ShareAsk(const ShareAsk&) = delete;
  ShareAsk& operator=(const ShareAsk&) = delete;
  ~ShareAsk() = default;

  Application& Add(Op op, const std::string& of, std::int64_t cost, const Quota& quota) {
    const std::size_t i = applications.size();
    charges[i] = {of, cost, &quota};
    Application& application = applications.emplace_back();
    application.op = op;
    application.charges = {&charges[i], 1};
    application.decisions = {&decisions[i], 1};
    return application;
  }
};

/// An application for which some charges are met by permits held here.
struct LeasingStore::Split {
  std::vector<Taken> taken;
  std::vector<std::uint32_t> sent;  // positions of the charges that went to the store
  std::vector<store::Charge> charges;
  std::vector<Decision> decisions;
};

/// The part of a batch that goes on to the store.
struct LeasingStore::Call {
  std::shared_ptr<LeasingStore*> owner;
  std::span<Application> theirs;
  Done done;
  std::vector<Application> ours;
  std::vector<std::uint32_t> places;
  std::vector<std::unique_ptr<Split>> splits;  // of each of ours; null: passed on unchanged

  void Fail(const Error& error) const {
    for (const std::uint32_t place : places) theirs[place].status = error;
    done();
  }
};

}  // namespace weir::store::lease
