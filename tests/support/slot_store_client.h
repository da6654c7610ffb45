#pragma once

#include <cstdint>
#include <future>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "slots/slot_store.h"

namespace weir::test {

/// A SlotStore with blocking calls that throw std::runtime_error on an error, for tests.
///
/// Thread-safe, except for the random numbers of Ask.
class SlotStoreClient {
 public:
  explicit SlotStoreClient(slots::SlotStore& store, std::uint64_t seed = 1)
      : store_(store), random_(seed) {}

  slots::Ask Ask(std::string event, std::string config, slots::Millis requested,
                 std::string tenant = {}) {
    return {std::move(event),
            std::move(config),
            requested,
            std::move(tenant),
            static_cast<std::int64_t>(random_() >> 1),
            {}};
  }

  std::vector<slots::Answer> Assign(std::vector<slots::Ask> asks) {
    return Wait<std::vector<slots::Answer>>(
        [&](auto done) { store_.AssignMany(std::move(asks), std::move(done)); });
  }
  slots::Answer Assign(slots::Ask ask) { return Assign(std::vector{std::move(ask)}).at(0); }
  std::optional<slots::Event> Look(const std::string& event) {
    return Wait<std::optional<slots::Event>>(
        [&](auto done) { store_.Look(event, std::move(done)); });
  }
  /// The slot of an event that holds a place.
  std::optional<slots::Slot> Find(const std::string& event) {
    std::optional<slots::Event> found = Look(event);
    if (!found || found->state == slots::State::kCancelled) return std::nullopt;
    return std::move(found->slot);
  }
  std::optional<slots::Slot> Cancel(const std::string& event) {
    return Wait<std::optional<slots::Slot>>(
        [&](auto done) { store_.Cancel(event, std::move(done)); });
  }
  std::optional<slots::Answer> Reschedule(slots::MoveRequest request) {
    return Wait<std::optional<slots::Answer>>(
        [&](auto done) { store_.Reschedule(std::move(request), std::move(done)); });
  }
  std::optional<slots::Answer> Restore(slots::MoveRequest request) {
    return Wait<std::optional<slots::Answer>>(
        [&](auto done) { store_.Restore(std::move(request), std::move(done)); });
  }
  slots::Claim Claim(slots::ClaimRequest request) {
    request.random = static_cast<std::int64_t>(random_() >> 1);
    return Wait<slots::Claim>(
        [&](auto done) { store_.ClaimDue(std::move(request), std::move(done)); });
  }
  std::vector<slots::Finished> Finish(std::vector<slots::Finish> ends) {
    return Wait<std::vector<slots::Finished>>(
        [&](auto done) { store_.FinishMany(std::move(ends), std::move(done)); });
  }
  std::vector<slots::ClaimNote> Notes(slots::Millis now) {
    return Wait<std::vector<slots::ClaimNote>>(
        [&](auto done) { store_.TakeNotes(now, std::move(done)); });
  }
  std::size_t Forget(std::vector<slots::ClaimNote> notes) {
    return Wait<std::size_t>(
        [&](auto done) { store_.ForgetNotes(std::move(notes), std::move(done)); });
  }
  std::vector<slots::Event> Due(slots::DueQuery query) {
    return Wait<std::vector<slots::Event>>(
        [&](auto done) { store_.ListDue(std::move(query), std::move(done)); });
  }
  std::vector<slots::Backlog> Backlogs(slots::Millis now) {
    return Wait<std::vector<slots::Backlog>>(
        [&](auto done) { store_.ListBacklogs(now, std::move(done)); });
  }
  slots::Retired Retire(slots::Retention retention) {
    return Wait<slots::Retired>([&](auto done) { store_.Retire(retention, std::move(done)); });
  }
  slots::Restored MarkRestored(slots::Millis now) {
    return Wait<slots::Restored>([&](auto done) { store_.MarkRestored(now, std::move(done)); });
  }
  slots::Config Put(slots::Config config) {
    return Wait<slots::Config>(
        [&](auto done) { store_.PutConfig(std::move(config), std::move(done)); });
  }
  std::optional<slots::Config> Get(const std::string& name) {
    return Wait<std::optional<slots::Config>>(
        [&](auto done) { store_.GetConfig(name, std::move(done)); });
  }
  std::vector<slots::Config> List() {
    return Wait<std::vector<slots::Config>>(
        [&](auto done) { store_.ListConfigs(std::move(done)); });
  }
  std::vector<slots::Config> Versions(const std::string& name) {
    return Wait<std::vector<slots::Config>>(
        [&](auto done) { store_.ListVersions(name, std::move(done)); });
  }
  bool Deactivate(const std::string& name) {
    return Wait<bool>([&](auto done) { store_.Deactivate(name, std::move(done)); });
  }
  std::vector<slots::WindowLoad> Windows(const std::string& config, slots::Millis from = 0,
                                         std::size_t limit = 100'000) {
    return Wait<std::vector<slots::WindowLoad>>(
        [&](auto done) { store_.ListWindows(config, from, limit, std::move(done)); });
  }
  slots::Findings Verify() {
    return Wait<slots::Findings>([&](auto done) { store_.Verify(std::move(done)); });
  }

 private:
  template <typename T, typename Call>
  T Wait(Call call) {
    std::promise<Result<T>> promise;
    std::future<Result<T>> future = promise.get_future();
    call(
        slots::SlotStore::Done<T>([&](Result<T> result) { promise.set_value(std::move(result)); }));
    Result<T> result = future.get();
    if (!result.ok()) throw std::runtime_error(result.error().message);
    return std::move(*result);
  }

  slots::SlotStore& store_;
  std::mt19937_64 random_;
};

}  // namespace weir::test
