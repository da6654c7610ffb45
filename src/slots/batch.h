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

/// A batch prepared for a store: a repeated event ID is submitted once, and asks of the same config
/// are grouped. Views point into the asks, which must outlive it. A value.
class Batch {
 public:
  explicit Batch(std::span<const Ask> asks);

  const std::vector<ConfigGroup>& groups() const noexcept { return groups_; }

  /// Gives asks that repeat an event ID the first one's answer: as kExisting if that was kNew, or
  /// as kConflict if they differ from it. `asks` are those of the batch. Returns those that must be
  /// submitted on their own (as indexes): the first one did not match the stored event but they
  /// may, or it was refused for a config, time or tenant that differs from theirs.
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
