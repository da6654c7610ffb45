#pragma once

// What a LeasingStore has asked of the store behind it, until that has answered.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "store/lease/leasing_store.h"

namespace weir::store::lease {

/// One key's question to the store for permits, or a return of some. Owns all its memory.
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
  }
  Ask(const Ask&) = delete;
  Ask& operator=(const Ask&) = delete;
  ~Ask() = default;
};

/// An application of which some charges are met by permits held here.
struct LeasingStore::Split {
  std::vector<Taken> taken;
  std::vector<std::uint32_t> sent;  // positions of the charges that went to the store
  std::vector<store::Charge> charges;
  std::vector<Decision> decisions;
};

/// What of a batch goes on to the store.
struct LeasingStore::Call {
  std::shared_ptr<LeasingStore*> owner;
  std::span<Application> theirs;
  Done done;
  std::vector<Application> ours;
  std::vector<std::uint32_t> places;
  std::vector<std::unique_ptr<Split>> splits;  // of each of ours; null: passed on as it is

  void Fail(const Error& error) const {
    for (const std::uint32_t place : places) theirs[place].status = error;
    done();
  }
};

}  // namespace weir::store::lease
