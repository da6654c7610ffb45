#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "protocol/http/check_batch.h"
#include "weir/result.h"

namespace weir::http {

/// The most that a body may contain. Texts are counted in bytes.
inline constexpr std::size_t kMaxChecks = 1000;
inline constexpr std::size_t kMaxDescriptors = 16;
inline constexpr std::size_t kMaxEntries = 16;
inline constexpr std::size_t kMaxNameBytes = 255;
inline constexpr std::size_t kMaxValueBytes = 1024;

/// This many bytes after a body must be readable, whatever they hold.
inline constexpr std::size_t kBodyPadding = 64;

/// Reads the JSON bodies of /v1/check, /v1/peek, /v1/refund, /v1/release, /v1/reserve and
/// /v1/settle. An unknown field
/// is an error: a misspelt "cost" must not silently become a cost of 1.
///
/// Not thread-safe: one per reactor.
class CheckReader {
 public:
  CheckReader();
  ~CheckReader();
  CheckReader(const CheckReader&) = delete;
  CheckReader& operator=(const CheckReader&) = delete;

  /// What the checks of a body are for.
  struct Ask {
    store::Op op = store::Op::kCharge;
    bool reserve = false;  ///< kCharge: to be settled later

    Ask(store::Op what) : op(what) {}  // NOLINT(google-explicit-constructor): nearly always
    Ask(store::Op what, bool reserves) : op(what), reserve(reserves) {}
  };

  struct Found {
    std::size_t first = 0;  ///< of the batch's checks
    std::size_t count = 0;
    bool batch = false;  ///< the body was {"checks":[…]}, so the answer is {"results":[…]}
  };

  /// Adds the checks of a body to `batch`. An error names the field; the batch is then unchanged.
  Result<Found> Read(std::string_view body, Ask ask, CheckBatch& batch);

 private:
  class Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace weir::http
