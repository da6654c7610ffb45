#include "store/mysql/key_list.h"

#include <vector>

#include "drivers/mysql/connection.h"
#include "store/mysql/schema.h"
#include "store/sql/key_list.h"

namespace weir::store::mysql {

Result<KeyPage> ReadKeys(const std::string& url, std::chrono::milliseconds patience,
                         const KeyQuery& query) {
  weir::mysql::Connection connection({.url = url,
                                      .connect_timeout = patience,
                                      .statement_timeout = patience,
                                      .limits = LimitsOf(patience)});
  const auto read = [&](const std::string& after,
                        std::size_t limit) -> Result<std::vector<sql::RowHead>> {
    // In primary key order, without locks.
    std::string sql = "SELECT id, IF(OCTET_LENGTH(state) <= " + std::to_string(sql::kWholeState) +
                      ", state, LEFT(state, " + std::to_string(sql::kStateBegin) +
                      ")), fresh_at <= CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED) * 1000"
                      " FROM weir_limits FORCE INDEX (PRIMARY) WHERE id > ";
    weir::mysql::AppendLiteral(sql, after);
    sql += " ORDER BY id LIMIT " + std::to_string(limit);
    weir::mysql::Answer answer = connection.Run(sql);
    if (!answer.status.ok()) return answer.status.error();
    std::vector<sql::RowHead> rows;
    if (answer.results.empty()) return rows;
    for (weir::mysql::Rows& row = answer.results[0]; row.Next();) {
      rows.push_back({std::string(row.Text(0)), std::string(row.Text(1)), row.Int(2) != 0});
    }
    return rows;
  };
  return sql::ReadKeys(query, read);
}

}  // namespace weir::store::mysql
