// weir notify export | import | preferences: users, as a CSV file and one by one.

#include <fstream>
#include <iostream>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/json_writer.h"
#include "base/number.h"
#include "console.h"
#include "csv.h"
#include "notify/notify_words.h"
#include "protocol/http/error.h"
#include "remote/json_fields.h"

namespace weir::app {
namespace {

constexpr std::size_t kMostUsers = 100'000'000;
constexpr std::size_t kMaxLine = 4096;
// A line of three cells is a user's cap, one with a fourth that of one channel.
constexpr std::string_view kHead = "userId,rateLimit,timeWindow";
constexpr std::string_view kHeadWithChannel = "userId,rateLimit,timeWindow,channel";

struct UserWords {
  Remote remote;
  std::string file = "-";
  std::string user;
  std::string quiet;
  std::string zone = "UTC";
  std::vector<std::string> opt_out;
  bool none = false;
  bool reset_count = false;
};
using SharedUserWords = std::shared_ptr<UserWords>;

int RunExport(const UserWords& words) {
  std::ofstream file;
  if (words.file != "-") file.open(words.file);
  std::ostream& out = words.file == "-" ? std::cout : file;
  out << kHeadWithChannel << '\n';
  const int code = EachNotifyRow(
      words.remote, "/api/config?", "users", kMostUsers, [&](simdjson::dom::element user) {
        std::string id;
        AppendCsv(id, TextOf(user, "userId"));
        out << id << ',' << NumberOf(user, "rateLimit") << ',' << NumberOf(user, "timeWindow")
            << ',' << TextOf(user, "channel") << '\n';
      });
  out.flush();
  if (!out) return Fail({Code::kInvalidArgument, "cannot write " + words.file});
  return code;
}

/// The request for a line.
struct LineRequest {
  std::string method;
  std::string target;
  std::string body;
};

/// Or the error in the line.
Result<LineRequest> ConfigOf(const Result<std::vector<std::string>>& cells, std::size_t bytes,
                             bool reset_count) {
  const Error wrong{Code::kInvalidArgument, "must be " + std::string(kHeadWithChannel)};
  if (!cells.ok()) return cells.error();
  if (bytes > kMaxLine) return wrong;
  if (cells->size() < 3 || cells->size() > 4) return wrong;
  const auto limit = ParseNumber<std::int64_t>((*cells)[1]);
  if (!limit) return Error{Code::kInvalidArgument, "rateLimit must be a whole number"};
  const auto minutes = ParseNumber<std::int64_t>((*cells)[2]);
  std::string body = JsonObject([&](JsonWriter& json) {
    json.Field("userId", (*cells)[0]).Field("rateLimit", *limit).Field("keepCount", !reset_count);
    if (minutes) {
      json.Field("timeWindow", *minutes);
    } else {
      json.Field("timeWindow", (*cells)[2]);  // with a unit, which the service reads
    }
  });
  if (cells->size() == 3 || (*cells)[3].empty()) return LineRequest{"POST", "/api/config", body};
  return LineRequest{
      "PUT", "/api/config/" + UrlEscaped((*cells)[0]) + "/channels/" + UrlEscaped((*cells)[3]),
      body};
}

/// Invalid lines are reported and skipped; a service that is down ends the import.
int Import(const UserWords& words, std::istream& in) {
  std::int64_t imported = 0;
  std::int64_t wrong = 0;
  std::int64_t number = 0;
  const std::string where = words.file == "-" ? "" : words.file + ": ";
  CsvLines csv;
  for (std::string line; std::getline(in, line);) {
    if (++number == 1) line = WithoutMark(line);
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty() || (number == 1 && (line == kHead || line == kHeadWithChannel))) continue;
    Result<LineRequest> wanted = ConfigOf(csv.Split(line, number), line.size(), words.reset_count);
    // Columns in another order would be read as caps of other users.
    if (number == 1 && !wanted.ok()) {
      return Fail({Code::kInvalidArgument,
                   where + "line 1: the header must be " + std::string(kHeadWithChannel) +
                       "; without one, the first line must be a valid cap"});
    }
    std::string problem = wanted.ok() ? std::string() : wanted.error().message;
    if (wanted.ok()) {
      Result<ServiceReply> reply =
          words.remote.Exchange(wanted->method, wanted->target, wanted->body);
      if (!reply.ok()) return Fail(reply.error());
      if (!reply->ok() && reply->status != 400) return FailRefused(*reply);
      if (!reply->ok()) problem = MessageOf(reply->body);
    }
    if (problem.empty()) {
      ++imported;
      continue;
    }
    ++wrong;
    std::cerr << "weir: " << Shown(where) << "line " << number << ": " << problem << '\n';
  }
  if (in.bad()) return Fail({Code::kUnavailable, words.file + ": cannot be read to its end"});
  std::cout << Counted(imported, "cap") << " imported";
  if (wrong > 0) std::cout << ", " << Counted(wrong, "line") << " skipped";
  std::cout << '\n';
  return wrong > 0 ? kExitNo : kExitOk;
}

int RunImport(const UserWords& words) {
  if (words.file == "-") return Import(words, std::cin);
  Result<std::ifstream> file = OpenFile(words.file);
  if (!file.ok()) return Fail(Invalid(words.file + ": " + file.error().message));
  return Import(words, *file);
}

int RunPreferences(const UserWords& words) {
  const std::string target = "/api/preferences/" + UrlEscaped(words.user);
  if (words.quiet.empty() && words.opt_out.empty() && !words.none) {
    return SendNotify(words.remote, "GET", target, {});
  }
  std::string body;
  JsonWriter json(body);
  json.BeginObject();
  if (!words.quiet.empty()) {
    const std::size_t dash = words.quiet.find('-');
    if (dash == std::string::npos) {
      return Fail({Code::kInvalidArgument, "--quiet must look like 22:00-07:00"});
    }
    json.Key("quietHours")
        .BeginObject()
        .Field("from", words.quiet.substr(0, dash))
        .Field("to", words.quiet.substr(dash + 1))
        .Field("zone", words.zone)
        .EndObject();
  }
  json.Key("optOut").BeginArray();
  for (const std::string& channel : words.opt_out) json.Value(channel);
  json.EndArray().EndObject();
  return SendNotify(words.remote, "PUT", target, body);
}

Syntax UserWord(Syntax parent, const char* name, const char* about, const SharedUserWords& words,
                int (*run)(const UserWords&)) {
  Syntax word = parent.AddSubcommand(name, about);
  words->remote.AddTo(word);
  word.OnRun([words, run] { return run(*words); });
  return word;
}

}  // namespace

void AddUserWords(Syntax notify) {
  auto out = std::make_shared<UserWords>();
  UserWord(notify, "export", "Write all users' caps as CSV.", out, RunExport)
      .AddOption("file", out->file, "File to write; - is standard output")
      .ShowDefault();
  auto in = std::make_shared<UserWords>();
  Syntax import =
      UserWord(notify, "import", "Set users' caps from CSV: userId,rateLimit,timeWindow[,channel].",
               in, RunImport);
  import.AddOption("file", in->file, "File to read; - is standard input").ShowDefault();
  import.AddFlag("--reset-count", in->reset_count,
                 "Start new windows with a count of 0; without it, windows go on");
  auto wishes = std::make_shared<UserWords>();
  Syntax word = UserWord(notify, "preferences", "Show or set quiet hours and opt-outs of a user.",
                         wishes, RunPreferences);
  word.AddOption("user", wishes->user, "The user's ID").Required();
  word.AddOption("--quiet", wishes->quiet,
                 "Hours in which messages are delayed, such as 22:00-07:00");
  word.AddOption("--zone", wishes->zone, "IANA time zone of the quiet hours").ShowDefault();
  word.AddOption("--opt-out", wishes->opt_out, "A channel to opt out of, or * for all; repeatable");
  word.AddFlag("--none", wishes->none, "Remove quiet hours and opt-outs");
  word.Footer("The options replace the current settings.");
}

}  // namespace weir::app
