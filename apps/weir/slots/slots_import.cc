#include "slots/slots_import.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <utility>

#include "console.h"
#include "protocol/http/error.h"
#include "slots/api/answers.h"
#include "slots/patient_assign.h"
#include "slots/slots_results.h"
#include "slots/time.h"

namespace weir::app {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kShown = 5;  // of the events that got no slot from this feed

std::string Brief(double seconds) {
  const long whole = std::lround(seconds);
  if (whole < 60) return std::to_string(whole) + "s";
  if (whole < 3600) return std::to_string(whole / 60) + "m" + std::to_string(whole % 60) + "s";
  return std::to_string(whole / 3600) + "h" + std::to_string(whole % 3600 / 60) + "m";
}

/// A bar with rate and remaining time on a terminal; elsewhere a line from time to time. Not
/// thread-safe.
class Progress {
 public:
  explicit Progress(bool quiet) : quiet_(quiet), terminal_(isatty(STDERR_FILENO) != 0) {}

  void Show(std::int64_t events, double share, bool last) {
    const auto now = Clock::now();
    const auto pause = std::chrono::milliseconds(terminal_ ? 100 : 5'000);
    if (quiet_ || (!last && now - shown_ < pause)) return;
    // In a log, the summary that follows is enough for an import that took a moment.
    if (!terminal_ && last && shown_ == begun_) return;
    shown_ = now;
    const double seconds = std::chrono::duration<double>(now - begun_).count();
    const double rate = seconds > 0 ? static_cast<double>(events) / seconds : 0;
    const double left = share > 0 ? seconds * (1 - share) / share : 0;
    std::string bar;
    if (terminal_) {
      constexpr std::size_t kWidth = 30;
      const auto filled = static_cast<std::size_t>(share * kWidth);
      bar = "\r[" + std::string(filled, '#') + std::string(kWidth - filled, '.') + "] ";
    }
    std::fprintf(stderr, "%s%3.0f%%  %lld events  %.0f/s  %s %s%s", bar.c_str(), share * 100,
                 static_cast<long long>(events), rate, last ? "in" : "ETA",
                 Brief(last ? seconds : left).c_str(), terminal_ && !last ? "   " : "   \n");
  }

  /// Starts a new line for other output, if the bar is on this one.
  void Interrupt() {
    if (!quiet_ && terminal_ && shown_ != begun_) std::fputc('\n', stderr);
  }

 private:
  const bool quiet_;
  const bool terminal_;
  const Clock::time_point begun_ = Clock::now();
  Clock::time_point shown_ = begun_;
};

/// One run of an import. Not thread-safe.
class Importer {
 public:
  Importer(SlotsTarget& target, const ImportOptions& options, FeedReader feed)
      : target_(target),
        options_(options),
        feed_(std::move(feed)),
        progress_(options.quiet),
        results_(options.out.empty()
                     ? std::filesystem::path(options.feed).replace_extension(".slots.csv").string()
                     : options.out) {}

  Result<ImportSummary> Run() {
    std::error_code error;
    if (std::filesystem::equivalent(options_.feed, results_.path(), error)) {
      return Error{Code::kInvalidArgument,
                   results_.path() + ": is the feed; give another file for the results"};
    }
    if (Status s = Resume(); !s.ok()) return s.error();
    for (auto events = NextBatch(); !events.empty(); events = NextBatch()) {
      if (Status s = Do(events); !s.ok()) return s.error();
      ShowProgress(false);
    }
    if (Status s = feed_.ended(); !s.ok()) return s.error();
    ShowProgress(true);
    if (Status s = results_.Finish(); !s.ok()) return s.error();
    if (const std::string ignored = feed_.Ignored(); !ignored.empty()) {
      std::cerr << "weir: " << ignored << '\n';
    }
    summary_.out = results_.path();
    return summary_;
  }

 private:
  Status Resume() {
    const auto& requested = options_.defaults.requested;
    const ImportTerms terms = {.target = options_.target,
                               .config = options_.defaults.config,
                               .at = requested ? slots::FormatInstant(*requested) : ""};
    const Status s = results_.Resume(terms, feed_, [this](std::string_view status) {
      ++summary_.resumed;
      ++CountOf(status);
    });
    summary_.events = summary_.resumed;
    return s;
  }

  std::vector<FeedEvent> NextBatch() {
    std::vector<FeedEvent> events;
    while (events.size() < options_.batch) {
      std::optional<FeedEvent> event = feed_.Next();
      if (!event) break;
      events.push_back(std::move(*event));
    }
    return events;
  }

  Status Do(const std::vector<FeedEvent>& events) {
    std::vector<slots::Ask> asks;
    for (const FeedEvent& event : events) {
      if (event.status.ok()) asks.push_back(event.ask);
    }
    Result<std::vector<slots::Answer>> answers = AssignPatiently(target_, asks);
    if (!answers.ok()) {
      return Error{answers.error().code,
                   answers.error().message + "; run the same command again to continue"};
    }
    std::size_t next = 0;
    for (const FeedEvent& event : events) {
      const ResultLine line = event.status.ok() ? Accept(event, (*answers)[next++]) : Reject(event);
      if (line.status != "NEW" && line.status != "EXISTING") Tell(line);
      results_.Add(event, line);
    }
    if (Status s = results_.Flush(); !s.ok()) return s;
    summary_.events += static_cast<std::int64_t>(events.size());
    return {};
  }

  ResultLine Accept(const FeedEvent& event, slots::Answer& answer) {
    const bool there = slots::WasThere(answer.outcome);
    const bool placed = there || answer.outcome == slots::Outcome::kNew;
    const std::string why = slots::WhyNot(answer, event.ask);
    std::string status = slots::OutcomeName(answer.outcome);
    if (!why.empty()) status += ": " + why;
    if (!placed) {
      answer.slot = {.event_id = event.ask.event_id,
                     .config = event.ask.config,
                     .requested = event.ask.requested};
    }
    CountOf(answer.outcome)++;
    summary_.last_window = std::max(summary_.last_window, answer.slot.window_start);
    return {std::move(answer.slot), std::move(status), placed};
  }

  std::int64_t& CountOf(slots::Outcome outcome) {
    switch (outcome) {
      case slots::Outcome::kNew:
        return summary_.fresh;
      case slots::Outcome::kExisting:
        return summary_.existing;
      case slots::Outcome::kConflict:
        return summary_.conflicts;
      case slots::Outcome::kCancelled:
        return summary_.cancelled;
      case slots::Outcome::kPast:
      case slots::Outcome::kUnanswered:
      case slots::Outcome::kExhausted:
      case slots::Outcome::kUnknownConfig:
        break;
    }
    return summary_.refused;
  }

  // The counter for a result of an earlier run.
  std::int64_t& CountOf(std::string_view status) {
    for (const slots::Outcome outcome : {slots::Outcome::kNew, slots::Outcome::kExisting,
                                         slots::Outcome::kConflict, slots::Outcome::kCancelled}) {
      if (status.substr(0, status.find(':')) == slots::OutcomeName(outcome))
        return CountOf(outcome);
    }
    return summary_.refused;
  }

  ResultLine Reject(const FeedEvent& event) {
    ++summary_.refused;
    return {{.event_id = event.ask.event_id, .config = event.ask.config},
            "INVALID: " + event.status.error().message,
            false};
  }

  /// Most feeds go wrong in one way: the first few events show it.
  void Tell(const ResultLine& line) {
    if (++told_ > kShown) return;
    progress_.Interrupt();
    std::cerr << "weir: ";
    if (!line.slot.event_id.empty()) std::cerr << "event " << Shown(line.slot.event_id) << ": ";
    std::cerr << Shown(line.status, 300) << '\n';
  }

  void ShowProgress(bool last) {
    const double share =
        last || feed_.bytes_total() <= 0
            ? 1.0
            : static_cast<double>(feed_.bytes_read()) / static_cast<double>(feed_.bytes_total());
    progress_.Show(summary_.events - summary_.resumed, std::min(share, 1.0), last);
  }

  SlotsTarget& target_;
  const ImportOptions& options_;
  FeedReader feed_;
  Progress progress_;
  ImportSummary summary_;
  ResultsFile results_;
  int told_ = 0;
};

}  // namespace

Result<ImportSummary> Import(SlotsTarget& target, const ImportOptions& options) {
  Result<FeedReader> feed = FeedReader::Open(options.feed, options.defaults);
  if (!feed.ok()) return feed.error();
  return Importer(target, options, std::move(*feed)).Run();
}

}  // namespace weir::app
