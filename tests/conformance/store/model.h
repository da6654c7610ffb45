#pragma once

// What every store must answer, computed by the pure steps.

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "algorithm/lease.h"
#include "algorithm/settle.h"
#include "algorithm/state.h"
#include "store/store.h"
#include "weir/clock.h"

namespace weir::store::conformance {

/// The specification as a program: states in a map, one step after the other.
class Model {
 public:
  explicit Model(const Clock& clock) : clock_(clock) {}

  void Apply(Application& application) {
    application.applied = true;
    if (application.op == Op::kCharge) application.at = clock_.Now();
    const std::span<const store::Charge> charges = application.charges;
    const std::span<Decision> decisions = application.decisions;
    const auto before = states_;
    const Nanos reserved = application.op == Op::kCharge ? ReservedFor(charges) : 0;
    for (std::size_t i = 0; i < charges.size(); ++i) {
      const store::Charge& charge = charges[i];
      switch (application.op) {
        case Op::kCharge:
          decisions[i] =
              reserved > 0 ? Reserve(charge, reserved) : Charge(charge, algorithm::Acquire);
          application.applied &= decisions[i].allowed();
          break;
        case Op::kPeek:
          decisions[i] = Peek(charge, charge.cost);
          break;
        case Op::kRefund:
          decisions[i] = Refund(charge);
          break;
        case Op::kOverdraw:
          decisions[i] = Charge(charge, algorithm::Overdraw);
          break;
        case Op::kRelease:
          application.applied = Release(charge, application.lease);
          decisions[i] = Peek(charge, 0);
          break;
        case Op::kLease: {
          const LeaseGrant grant = Lease(charge);
          decisions[i] = grant.decision;
          application.granted = grant.granted;
          application.at = grant.at;
          application.applied = grant.granted > 0;
          break;
        }
        case Op::kReturn:
          decisions[i] = Return(charge, application.lease);
          break;
        case Op::kSettle:
          if (i == 0) {
            application.applied = Release(charge, application.lease);
            decisions[i] = Peek(charge, 0);
          } else {
            decisions[i] = Settle(charge, application.stamps[i], application.applied);
          }
          break;
        case Op::kReset:
          for (auto& [id, state] : states_) {
            if (id.first == charge.key) state.clear();
          }
          decisions[i] = Peek(charge, 0);
          break;
      }
    }
    if (application.op == Op::kCharge && !application.applied) states_ = before;
  }

 private:
  using Bytes = std::vector<std::uint8_t>;

  Bytes& Find(const store::Charge& charge) {
    return states_[{std::string(charge.key), charge.quota->algorithm()}];
  }
  static algorithm::State View(Bytes& bytes, std::size_t size) {
    return {bytes.data(), static_cast<std::uint32_t>(size),
            static_cast<std::uint32_t>(bytes.size())};
  }
  Decision Peek(const store::Charge& charge, std::int64_t cost) {
    Bytes& bytes = Find(charge);
    return algorithm::Peek(*charge.quota, View(bytes, bytes.size()), clock_.Now(), cost);
  }
  using Step = Decision(const Quota&, algorithm::State&, Nanos, std::int64_t) noexcept;
  Decision Charge(const store::Charge& charge, Step* step) {
    return Grow(charge, [&](algorithm::State& state) {
      return step(*charge.quota, state, clock_.Now(), charge.cost);
    });
  }
  Decision Reserve(const store::Charge& charge, Nanos lasts) {
    return Grow(charge, [&](algorithm::State& state) {
      return algorithm::Reserve(*charge.quota, state, clock_.Now(), charge.cost, lasts);
    });
  }
  Decision Refund(const store::Charge& charge) {
    Bytes& bytes = Find(charge);
    algorithm::State state = View(bytes, bytes.size());
    const Decision decision = algorithm::Refund(*charge.quota, state, clock_.Now(), charge.cost);
    bytes.resize(state.size);
    return decision;
  }
  LeaseGrant Lease(const store::Charge& charge) {
    Bytes& bytes = Find(charge);
    const std::size_t size = bytes.size();
    bytes.resize(std::max<std::size_t>(
        size, algorithm::CapacityForReserve(*charge.quota, View(bytes, size))));
    algorithm::State state = View(bytes, size);
    const LeaseGrant grant = algorithm::Lease(*charge.quota, state, clock_.Now(), charge.cost);
    bytes.resize(state.size);
    return grant;
  }
  Decision Return(const store::Charge& charge, Nanos at) {
    Bytes& bytes = Find(charge);
    algorithm::State state = View(bytes, bytes.size());
    const Decision decision =
        algorithm::Return(*charge.quota, state, clock_.Now(), at, charge.cost);
    bytes.resize(state.size);
    return decision;
  }
  Decision Settle(const store::Charge& charge, Nanos stamp, bool open) {
    return Grow(charge, [&](algorithm::State& state) {
      return open ? algorithm::Settle(*charge.quota, state, clock_.Now(), stamp, charge.cost)
                  : algorithm::Overdraw(*charge.quota, state, clock_.Now(), 0);
    });
  }
  template <typename Run>
  Decision Grow(const store::Charge& charge, Run run) {
    Bytes& bytes = Find(charge);
    const std::size_t size = bytes.size();
    bytes.resize(std::max<std::size_t>(
        size, algorithm::CapacityForReserve(*charge.quota, View(bytes, size))));
    algorithm::State state = View(bytes, size);
    const Decision decision = run(state);
    bytes.resize(state.size);
    return decision;
  }
  bool Release(const store::Charge& charge, std::int64_t lease) {
    Bytes& bytes = Find(charge);
    algorithm::State state = View(bytes, bytes.size());
    const bool released = algorithm::Release(*charge.quota, state, clock_.Now(), lease);
    bytes.resize(state.size);
    return released;
  }

  const Clock& clock_;
  std::map<std::pair<std::string, Algorithm>, Bytes> states_;
};

}  // namespace weir::store::conformance
