#pragma once

#include <span>

namespace weir::notify::sqlite {

std::span<const char* const> Migrations() noexcept;

}  // namespace weir::notify::sqlite
