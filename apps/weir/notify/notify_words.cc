#include "notify/notify_words.h"

#include <algorithm>
#include <iostream>

#include "console.h"
#include "remote/json_fields.h"
#include "remote/json_rows.h"

namespace weir::app {

int SendNotify(const Remote& remote, std::string_view method, const std::string& target,
               std::string_view body) {
  Result<ServiceReply> reply = remote.Exchange(method, target, body);
  if (!reply.ok()) return Fail(reply.error());
  if (reply->ok()) {
    if (reply->body.empty()) return kExitOk;
    if (!remote.json) return PrintFields(reply->body);
    std::cout << reply->body << '\n';
    return kExitOk;
  }
  const int code = FailRefused(*reply);
  return reply->status == 429 ? kExitNo : code;
}

int EachNotifyRow(const Remote& remote, const std::string& target, const char* field,
                  std::size_t most, const std::function<void(simdjson::dom::element)>& take) {
  constexpr std::size_t kPage = 1000;
  simdjson::dom::parser parser;
  std::string next;
  std::size_t rows = 0;
  do {
    const std::string page = "&limit=" + std::to_string(std::min(kPage, most - rows));
    const std::string after = next.empty() ? "" : "&after=" + UrlEscaped(next);
    const Result<ServiceReply> reply = remote.Exchange("GET", target + page + after);
    if (!reply.ok()) return Fail(reply.error());
    if (!reply->ok()) return FailRefused(*reply);
    simdjson::dom::element answer;
    simdjson::dom::array list;
    if (parser.parse(reply->body).get(answer) != simdjson::SUCCESS ||
        answer[field].get(list) != simdjson::SUCCESS) {
      return FailUnexpected();
    }
    rows += list.size();
    for (const simdjson::dom::element row : list) take(row);
    next = TextOf(answer, "next");
  } while (!next.empty() && rows < most);
  return kExitOk;
}

}  // namespace weir::app
