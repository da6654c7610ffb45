#pragma once

// What WEIR.APPLY answers. docs/reference/resp.md has the format.

#include <span>
#include <string>
#include <string_view>

#include "store/store.h"
#include "weir/result.h"

namespace weir::store::wire {

std::string WriteAnswer(std::span<const Application> applications);

/// Fills applications with what WriteAnswer wrote of the same ones. Anything else is kInternal, and
/// what was filled by then means nothing.
Status ReadAnswer(std::string_view bytes, std::span<Application* const> applications);

}  // namespace weir::store::wire
