#include <simdjson.h>
#include <unistd.h>

#include <iostream>
#include <memory>

#include "command.h"
#include "console.h"
#include "protocol/http/uri.h"
#include "remote/json_fields.h"
#include "remote/remote.h"
#include "remote/waits.h"

// weir keys: lists the buckets in the store, for example to find those of a customer.

namespace weir::app::keys_command {
namespace {

namespace dom = simdjson::dom;

constexpr int kMostShown = 100'000;
constexpr std::size_t kPage = 1000;

struct Words {
  Remote remote;
  std::string text;
  std::string prefix;
  bool limited = false;
  int limit = 20;
  std::uint64_t search = 100'000;
};

/// A name contains the text as it is printed, or as it was before the escapes (%XX).
bool Contains(std::string_view bucket, std::string_view text) {
  if (bucket.find(text) != bucket.npos) return true;
  const auto plain = http::DecodeAnySegment(bucket);
  return plain && plain->find(text) != std::string::npos;
}

std::string StateOf(dom::element bucket) {
  const std::string status = TextOf(bucket, "status");
  if (status == "LIMITED") return "limited";
  if (status == "SHADOW") return "over a shadow limit";
  if (status == "REPLACED") return "used up; another policy applies";
  return status.empty() ? "-" : "has room";
}

std::string FullIn(dom::element bucket) {
  dom::element value;
  if (bucket["resetAfterMs"].get(value) != simdjson::SUCCESS) return "-";
  const std::int64_t ms = NumberOf(bucket, "resetAfterMs");
  return ms == 0 ? "now" : Wait(ms);
}

std::string UsedOf(dom::element bucket) {
  dom::element value;
  if (bucket["capacity"].get(value) != simdjson::SUCCESS) return "-";
  return TextOf(bucket, "windowRequestCount") + " of " + TextOf(bucket, "capacity");
}

/// Goes through the store page by page. Not thread-safe.
class Search {
 public:
  explicit Search(const Words& words) : words_(words) {}

  int Run() {
    do {
      if (const int exit = Page(); exit != kExitOk) return exit;
    } while (!cursor_.empty() && shown_ < words_.limit && seen_ < words_.search);
    if (told_) std::cerr << "\r\x1b[K";
    Show();
    SayWhatIsLeft();
    if (shown_ > 0) return kExitOk;
    // Only a search of everything shows that there are none.
    return cursor_.empty() ? kExitNo : kExitRefused;
  }

 private:
  int Page() {
    const Result<ServiceReply> page = words_.remote.Exchange(
        "GET", "/admin/metrics?limit=" + std::to_string(kPage) +
                   "&prefix=" + UrlEscaped(words_.prefix) + "&cursor=" + UrlEscaped(cursor_));
    if (!page.ok()) return Fail(page.error());
    if (!page->ok()) return FailRefused(*page);
    dom::array buckets;
    if (parser_.parse(page->body).get(buckets) != simdjson::SUCCESS) return FailUnexpected();
    for (const dom::element bucket : buckets) Add(bucket);
    seen_ += buckets.size();
    cursor_ = page->Header("x-next-cursor");
    if (seen_ > kPage && isatty(STDERR_FILENO) != 0) {
      told_ = true;
      std::cerr << "\r" << Grouped(seen_) << " buckets searched" << std::flush;
    }
    return kExitOk;
  }

  void Add(dom::element bucket) {
    const std::string name = TextOf(bucket, "bucket");
    if (!Contains(name, words_.text)) return;
    if (words_.limited && TextOf(bucket, "status") != "LIMITED") return;
    if (shown_ == words_.limit) {
      more_ = true;
      return;
    }
    ++shown_;
    if (words_.remote.json) {
      json_ += (json_.size() > 1 ? "," : "") + std::string(simdjson::minify(bucket));
      return;
    }
    const std::string policy = TextOf(bucket, "policy");
    table_.Add(
        {name, StateOf(bucket), UsedOf(bucket), FullIn(bucket), policy.empty() ? "-" : policy});
  }

  void Show() const {
    if (words_.remote.json) {
      std::cout << json_ << "]\n";
    } else if (shown_ > 0) {
      std::cout << table_.ToString();
    } else if (cursor_.empty()) {
      std::cout << table_.ToString() << "(none)\n";
    }
  }

  void SayWhatIsLeft() const {
    if (more_) {
      std::cerr << "weir: only the first " << shown_ << " are shown (--limit)\n";
    } else if (cursor_.empty()) {
      return;
    } else if (shown_ == words_.limit) {
      std::cerr << "weir: only the first " << shown_
                << " found are shown; the search stopped there, so there may be more (--limit)\n";
    } else if (shown_ == 0) {
      std::cerr << "weir: none found among the first " << Grouped(seen_)
                << " buckets searched, and there are more (--search, --prefix)\n";
    } else {
      std::cerr << "weir: the first " << Grouped(seen_)
                << " buckets were searched, and there are more (--search, --prefix)\n";
    }
  }

  const Words& words_;
  dom::parser parser_;
  std::string cursor_;
  std::uint64_t seen_ = 0;
  int shown_ = 0;
  bool more_ = false;
  bool told_ = false;
  std::string json_ = "[";
  Table table_{{"bucket", "state", ">used", ">back to full in", "policy"}};
};

void Configure(Syntax word) {
  auto words = std::make_shared<Words>();
  word.AddOption("text", words->text,
                 "Only buckets whose name contains this, such as a customer's ID");
  word.AddOption("--prefix", words->prefix,
                 "Only buckets whose name starts with this: api/per-user|");
  word.AddFlag("--limited", words->limited, "Only buckets that are limited now");
  word.AddOption("--limit", words->limit, "Maximum number of results")
      .Between(1, kMostShown)
      .ShowDefault();
  word.AddOption("--search", words->search, "How many buckets to search")
      .Between(std::uint64_t{1}, std::uint64_t{1'000'000'000})
      .ShowDefault();
  words->remote.AddTo(word);
  word.Footer(
      "Charges nothing. Exits with 1 if there is no such bucket, and with 4 if none was found, but "
      "the search stopped at --search buckets. `weir explain BUCKET` says more.\n\n"
      "  weir keys 42 --limited\n  weir keys --prefix 'api/per-user|'");
  word.OnRun([words] { return Search(*words).Run(); });
}

const Command kKeys("keys", "List the buckets in the store, or find those of a customer.",
                    Configure);

}  // namespace
}  // namespace weir::app::keys_command
