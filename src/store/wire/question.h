#pragma once

// The contents of WEIR.APPLY: applications for a store, as bytes, from one Weir to another that it
// uses as its store. docs/reference/resp.md has the format.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/store.h"
#include "weir/decision.h"
#include "weir/quota.h"
#include "weir/result.h"

namespace weir::store::wire {

inline constexpr std::uint8_t kVersion = 1;
/// The limits of one call.
inline constexpr std::size_t kMaxApplications = 1024;
inline constexpr std::size_t kMaxCharges = 4096;
inline constexpr std::size_t kMaxKeyBytes = 8192;
inline constexpr std::size_t kMaxBytes = std::size_t{512} << 10;

/// An upper bound on the bytes that an application takes.
std::size_t SizeOf(const Application& application) noexcept;

std::string WriteQuestion(std::span<Application* const> applications);

/// Applications that were read, with all memory that they and their answers need.
///
/// Not thread-safe. Never moves: the applications point into it.
class Question {
 public:
  /// From what WriteQuestion wrote; anything else is kInvalidArgument.
  static Result<std::unique_ptr<Question>> Read(std::string_view bytes);

  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;
  ~Question() = default;

  std::span<Application> applications() noexcept { return applications_; }
  std::size_t charges() const noexcept { return charges_.size(); }

 private:
  class Parse;
  explicit Question(std::string_view bytes) : bytes_(bytes) {}

  const std::string bytes_;  // the keys are in it
  std::vector<Application> applications_;
  std::vector<Charge> charges_;
  std::vector<Quota> quotas_;
  std::vector<Nanos> stamps_;
  std::vector<Decision> decisions_;
};

}  // namespace weir::store::wire
