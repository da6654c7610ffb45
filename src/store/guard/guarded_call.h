#pragma once

// What a GuardedStore keeps of a call until the store releases it. For guarded_store.cc alone.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/guard/guarded_store.h"

namespace weir::store::guard {

/// A copy of what was sent to the store, and where its answer goes.
struct GuardedStore::Call {
  std::span<Application> theirs;  // not to be touched once `told`
  Done done;
  Told probe_done;  // of a probe, which has no `theirs`
  bool counts = true;
  std::uint32_t part = 0;  // of the store; all applications are for this part

  std::vector<Application> ours;
  std::vector<std::uint32_t> places;  // in theirs, of each of ours
  std::vector<Charge> charges;
  std::vector<Nanos> stamps;  // of the charges that are settled
  std::vector<Decision> decisions;
  std::vector<Quota> quotas;
  std::vector<std::uint64_t> marks;  // of the charges, for the cache
  std::string keys;

  std::size_t number = 0;  // its place in calls_
  Nanos sent = 0;
  std::uint64_t period = 0;
  bool told = false;
  Call* previous = nullptr;
  Call* next = nullptr;

  /// Copies an application; pointers are set by Point when all are in.
  void Add(const Application& application, std::uint32_t place) {
    Application& own = ours.emplace_back();
    own.op = application.op;
    own.lease = application.lease;
    own.region = application.region;
    own.returnable = application.returnable;
    places.push_back(place);
    stamps.insert(stamps.end(), application.stamps.begin(), application.stamps.end());
    stamps.resize(charges.size() + application.charges.size());
    for (const Charge& charge : application.charges) {
      keys += charge.key;
      charges.push_back({charge.key, charge.cost, nullptr});
      quotas.push_back(*charge.quota);
    }
    own.charges = {static_cast<const Charge*>(nullptr), 0};
    counts_.push_back(application.charges.size());
  }

  void Point() {
    decisions.resize(charges.size());
    std::size_t key_at = 0;
    for (std::size_t i = 0; i < charges.size(); ++i) {
      const std::size_t size = charges[i].key.size();
      charges[i].key = std::string_view(keys).substr(key_at, size);
      charges[i].quota = &quotas[i];
      key_at += size;
    }
    std::size_t first = 0;
    for (std::size_t i = 0; i < ours.size(); ++i) {
      ours[i].charges = std::span(charges).subspan(first, counts_[i]);
      ours[i].stamps = std::span(stamps).subspan(first, counts_[i]);
      ours[i].decisions = std::span(decisions).subspan(first, counts_[i]);
      first += counts_[i];
    }
  }

  std::size_t FirstCharge(const Application& own) const {
    return own.charges.empty() ? 0 : static_cast<std::size_t>(own.charges.data() - charges.data());
  }

  void CopyAnswers() const {
    for (std::size_t i = 0; i < ours.size(); ++i) {
      Application& to = theirs[places[i]];
      to.applied = ours[i].applied;
      to.status = ours[i].status;
      to.granted = ours[i].granted;
      to.at = ours[i].at;
      to.estimated = ours[i].estimated;
      std::copy(ours[i].decisions.begin(), ours[i].decisions.end(), to.decisions.begin());
    }
  }

  void Clear() {
    theirs = {};
    done = nullptr;
    probe_done = nullptr;
    counts = true;
    part = 0;
    ours.clear();
    places.clear();
    charges.clear();
    stamps.clear();
    decisions.clear();
    quotas.clear();
    marks.clear();
    keys.clear();
    counts_.clear();
    told = false;
  }

 private:
  std::vector<std::size_t> counts_;
};

/// Calls that are not answered yet. All have the same timeout, so the first is due first.
struct GuardedStore::CallList {
  Call* first = nullptr;
  Call* last = nullptr;

  void Append(Call& call) {
    call.previous = last;
    call.next = nullptr;
    (last == nullptr ? first : last->next) = &call;
    last = &call;
  }
  void Remove(Call& call) {
    (call.previous == nullptr ? first : call.previous->next) = call.next;
    (call.next == nullptr ? last : call.next->previous) = call.previous;
  }
};

}  // namespace weir::store::guard
