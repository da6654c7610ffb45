#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "slots/slot_store.h"

namespace weir::test {

/// A SlotStore that never answers, for tests that override a call or two.
///
/// As thread-safe as what is added to it.
class IdleSlotStore : public slots::SlotStore {
 public:
  void AssignMany(std::vector<slots::Ask>, Done<std::vector<slots::Answer>>) override {}
  void Look(std::string, Done<std::optional<slots::Event>>) override {}
  void Cancel(std::string, Done<std::optional<slots::Slot>>) override {}
  void Reschedule(slots::MoveRequest, Done<std::optional<slots::Answer>>) override {}
  void Restore(slots::MoveRequest, Done<std::optional<slots::Answer>>) override {}
  void ClaimDue(slots::ClaimRequest, Done<slots::Claim>) override {}
  void FinishMany(std::vector<slots::Finish>, Done<std::vector<slots::Finished>>) override {}
  void TakeNotes(slots::Millis, Done<std::vector<slots::ClaimNote>>) override {}
  void ForgetNotes(std::vector<slots::ClaimNote>, Done<std::size_t>) override {}
  void ListDue(slots::DueQuery, Done<std::vector<slots::Event>>) override {}
  void ListBacklogs(slots::Millis, Done<std::vector<slots::Backlog>>) override {}
  void Retire(slots::Retention, Done<slots::Retired>) override {}
  void MarkRestored(slots::Millis, Done<slots::Restored>) override {}
  void PutConfig(slots::Config, Done<slots::Config>) override {}
  void GetConfig(std::string, Done<std::optional<slots::Config>>) override {}
  void ListConfigs(Done<std::vector<slots::Config>>) override {}
  void ListVersions(std::string, Done<std::vector<slots::Config>>) override {}
  void Deactivate(std::string, Done<bool>) override {}
  void ListWindows(std::string, slots::Millis, std::size_t,
                   Done<std::vector<slots::WindowLoad>>) override {}
  void Verify(Done<slots::Findings>) override {}
};

}  // namespace weir::test
