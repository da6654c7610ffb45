#pragma once

// The answer to WEIR.APPLY. docs/reference/resp.md has the format.

#include <span>
#include <string>
#include <string_view>

#include "store/store.h"
#include "weir/result.h"

namespace weir::store::wire {

std::string WriteAnswer(std::span<const Application> applications);

/// Fills applications from what WriteAnswer wrote for the same ones. Anything else is kInternal,
/// and whatever was filled by then is meaningless.
Status ReadAnswer(std::string_view bytes, std::span<Application* const> applications);

}  // namespace weir::store::wire
