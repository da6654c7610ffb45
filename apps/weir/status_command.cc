#include <simdjson.h>

#include <iostream>
#include <memory>

#include "command.h"
#include "console.h"
#include "remote.h"

// weir status: is the service well, and what has it done.

namespace weir::app {
namespace {

namespace dom = simdjson::dom;

int Print(const ServiceReply& reply) {
  dom::parser parser;
  dom::object status;
  if (parser.parse(reply.body).get(status) != simdjson::SUCCESS) {
    return Fail({Code::kUnavailable, "the answer is not ours"});
  }
  Table table({"what", "value"});
  for (const auto& [name, value] : status) {
    std::string_view text;
    dom::array list;
    if (value.get(list) == simdjson::SUCCESS) {
      for (const dom::element item : list) {
        if (item.get(text) == simdjson::SUCCESS) {
          table.Add({std::string(name), std::string(text)});
        }
      }
    } else if (value.get(text) == simdjson::SUCCESS) {
      table.Add({std::string(name), std::string(text)});
    } else {
      table.Add({std::string(name), simdjson::minify(value)});
    }
  }
  std::cout << table.ToString();
  return kExitOk;
}

void Configure(CLI::App& word, int& exit_code) {
  auto remote = std::make_shared<Remote>();
  remote->AddTo(word);
  word.callback([remote, &exit_code] {
    exit_code =
        remote->Ask("GET", "/admin/status", {}, [&remote](const ServiceReply& reply) -> int {
          return remote->json ? static_cast<int>(kExitOk) : Print(reply);
        });
  });
}

const Command kStatus("status", "Tell how a running service is.", Configure);

}  // namespace
}  // namespace weir::app
