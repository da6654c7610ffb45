#include "drivers/postgres/rows.h"

#include <libpq-fe.h>

#include "base/number.h"

namespace weir::postgres {

void Rows::Clear::operator()(pg_result* result) const noexcept { PQclear(result); }

int Rows::size() const noexcept { return result_ ? PQntuples(result_.get()) : 0; }

std::int64_t Rows::affected() const noexcept {
  return result_ ? ParseNumber<std::int64_t>(PQcmdTuples(result_.get())).value_or(0) : 0;
}

bool Rows::IsNull(int row, int column) const noexcept {
  return PQgetisnull(result_.get(), row, column) != 0;
}

std::int64_t Rows::Int(int row, int column) const noexcept {
  const std::string_view bytes = Text(row, column);
  if (bytes.empty()) return 0;
  // Big-endian two's complement of 1, 2, 4 or 8 bytes.
  std::uint64_t value = (bytes[0] & 0x80) != 0 && bytes.size() > 1 ? ~std::uint64_t{0} : 0;
  for (char byte : bytes) value = value << 8 | static_cast<unsigned char>(byte);
  return static_cast<std::int64_t>(value);
}

std::string_view Rows::Text(int row, int column) const noexcept {
  return {PQgetvalue(result_.get(), row, column),
          static_cast<std::size_t>(PQgetlength(result_.get(), row, column))};
}

}  // namespace weir::postgres
