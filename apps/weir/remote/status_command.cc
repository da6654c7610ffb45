#include <simdjson.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "command.h"
#include "console.h"
#include "remote/remote.h"

// weir status: is the service well, and what has it done.

namespace weir::app::status_command {
namespace {

namespace dom = simdjson::dom;

// Long enough for a sentence with the path of a file in it: at the end of it stands what to do.
constexpr std::size_t kLine = 500;

using Rows = std::vector<std::pair<std::string, std::string>>;

/// A value as rows: a list has one for each item, an object one for each field.
void AddRows(const std::string& name, const dom::element& value, Rows& rows) {
  std::string_view text;
  dom::array list;
  dom::object object;
  if (value.get(list) == simdjson::SUCCESS) {
    for (const dom::element item : list) AddRows(name, item, rows);
  } else if (value.get(object) == simdjson::SUCCESS) {
    for (const auto& [field, of_field] : object) {
      AddRows(name + (name.empty() ? "" : ".") + std::string(field), of_field, rows);
    }
  } else if (value.get(text) == simdjson::SUCCESS) {
    rows.emplace_back(name, text);
  } else {
    rows.emplace_back(name, simdjson::minify(value));
  }
}

int Print(const ServiceReply& reply) {
  dom::parser parser;
  dom::element status;
  if (parser.parse(reply.body).get(status) != simdjson::SUCCESS || !status.is_object()) {
    return Fail({Code::kUnavailable, "unexpected response"});
  }
  Rows rows;
  AddRows("", status, rows);
  std::size_t width = 0;
  for (const auto& [name, text] : rows) width = std::max(width, Columns(Shown(name)));
  for (const auto& [name, text] : rows) {
    const std::string shown = Shown(name);
    std::cout << shown << std::string(width - Columns(shown) + 2, ' ') << Shown(text, kLine)
              << '\n';
  }
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

const Command kStatus("status", "Show the status of a running service.", Configure);

}  // namespace
}  // namespace weir::app::status_command
