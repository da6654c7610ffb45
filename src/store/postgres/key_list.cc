#include "store/postgres/key_list.h"

#include <boost/asio/io_context.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "drivers/postgres/connection.h"
#include "store/sql/key_list.h"

namespace weir::store::postgres {
namespace {

// In primary key order, without locks.
const std::string& ListRows() {
  static const std::string sql =
      "SELECT key, CASE WHEN octet_length(state) <= " + std::to_string(sql::kWholeState) +
      " THEN state ELSE substring(state FROM 1 FOR " + std::to_string(sql::kStateBegin) +
      ") END, fresh_at <= (extract(epoch FROM now()) * 1000000)::bigint * 1000"
      " FROM weir_limits WHERE key > $1::bytea ORDER BY key LIMIT $2::bigint";
  return sql;
}

}  // namespace

Result<KeyPage> ReadKeys(const std::string& url, std::chrono::milliseconds patience,
                         const KeyQuery& query) {
  boost::asio::io_context io(1);
  weir::postgres::Connection connection(
      io, {.url = url,
           .connect_timeout = patience,
           .statement_timeout = patience,
           .session = "-c enable_seqscan=off -c enable_bitmapscan=off -c jit=off"});
  const auto read = [&](const std::string& after,
                        std::size_t limit) -> Result<std::vector<sql::RowHead>> {
    std::optional<weir::postgres::Answer> answer;
    connection.Send(ListRows(),
                    weir::postgres::Params().Bytes(after).Int(static_cast<std::int64_t>(limit)),
                    [&answer](weir::postgres::Answer given) { answer = std::move(given); });
    while (!answer) {
      io.restart();
      io.run_one();
    }
    if (!answer->status.ok()) return answer->status.error();
    std::vector<sql::RowHead> rows;
    rows.reserve(static_cast<std::size_t>(answer->rows.size()));
    for (int i = 0; i < answer->rows.size(); ++i) {
      rows.push_back({std::string(answer->rows.Text(i, 0)), std::string(answer->rows.Text(i, 1)),
                      answer->rows.Int(i, 2) != 0});
    }
    return rows;
  };
  return sql::ReadKeys(query, read);
}

}  // namespace weir::store::postgres
