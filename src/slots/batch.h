#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "slots/slot.h"

namespace weir::slots {

/// The asks of one config within a batch, by requested time and then by input order.
struct ConfigGroup {
  std::string_view config;
  std::vector<std::size_t> asks;  ///< indexes into the batch
};

/// A batch made ready for a store: an event id that occurs twice is asked once, and what belongs to
/// one config stands together. Views point into the asks, which must stay. A value.
class Batch {
 public:
  explicit Batch(std::span<const Ask> asks);

  const std::vector<ConfigGroup>& groups() const noexcept { return groups_; }

  /// Gives asks that repeat an event id the first one's answer: as kExisting if that was kNew, or
  /// as kConflict if they ask for something else. `asks` are those of the batch. Tells which must
  /// be asked by themselves: the first one was not for the event that is there, which they may be
  /// for, or was refused for a config, time or tenant that is not theirs.
  [[nodiscard]] std::vector<std::size_t> CopyAnswers(std::span<const Ask> asks,
                                                     std::vector<Answer>& answers) const;

 private:
  struct Repeat {
    std::size_t ask;
    std::size_t first;
  };

  std::vector<ConfigGroup> groups_;
  std::vector<Repeat> repeats_;
};

}  // namespace weir::slots
