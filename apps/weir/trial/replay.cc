#include "trial/replay.h"

#include <sys/stat.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "console.h"

namespace weir::app {
namespace {

constexpr std::size_t kBatch = 256;
constexpr std::size_t kExamples = 5;
constexpr std::size_t kChunk = std::size_t{1} << 20U;

/// A log's lines, whether or not it is compressed.
///
/// Not thread-safe.
class LineReader {
 public:
  explicit LineReader(const std::string& path) : file_(gzopen(path.c_str(), "rbe")) {
    struct stat about {};
    if (stat(path.c_str(), &about) == 0) size_ = static_cast<double>(about.st_size);
    if (file_ != nullptr) gzbuffer(file_, kChunk);
    buffer_.resize(2 * kChunk);
  }
  ~LineReader() {
    if (file_ != nullptr) gzclose(file_);
  }
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  bool ok() const { return file_ != nullptr; }
  bool damaged() const { return damaged_; }
  double part() const {
    return size_ <= 0 ? 1 : std::min(1.0, static_cast<double>(gzoffset(file_)) / size_);
  }

  /// The next lines, as many as are in memory: valid until the next call. Empty at the end.
  /// A line that is longer than the buffer arrives in pieces, which no format accepts.
  std::string_view NextBlock() {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    for (;;) {
      const int got = gzread(file_, buffer_.data() + end_,
                             static_cast<unsigned>(std::min(kChunk, buffer_.size() - end_)));
      if (got < 0) damaged_ = true;
      if (got <= 0) break;
      end_ += static_cast<std::size_t>(got);
      const auto* newline = static_cast<const char*>(memrchr(buffer_.data(), '\n', end_));
      if (newline != nullptr) {
        begin_ = static_cast<std::size_t>(newline - buffer_.data()) + 1;
        return {buffer_.data(), begin_};
      }
      if (end_ == buffer_.size()) break;
    }
    begin_ = end_;
    return {buffer_.data(), end_};
  }

 private:
  gzFile file_;
  double size_ = 0;
  bool damaged_ = false;
  std::string buffer_;
  std::size_t begin_ = 0;  // of what has not been returned
  std::size_t end_ = 0;
};

/// Lines in, counts out.
class Run {
 public:
  Run(const ReplayOptions& options, ReplayResult& result)
      : result_(result), max_differences_(options.max_differences), parser_(options.format) {}

  void Line(std::string_view line) {
    if (line.empty()) return;
    ++result_.lines;
    // The parser's views of a JSON line are invalid after the next line.
    const bool keeps_views = parser_.format() == access_log::Format::kCombined ||
                             parser_.format() == access_log::Format::kEnvoy;
    if (!keeps_views) Flush();
    const auto record = parser_.Parse(line);
    if (!record) return Malformed(line);
    Nanos at = record->at;
    if (result_.to != 0 && at < result_.to) {
      ++result_.out_of_order;
      at = result_.to;
    }
    if (result_.to == 0) result_.from = at;
    if (at != at_ || records_.size() == kBatch) Flush();
    at_ = at;
    result_.to = at;
    result_.without_ip += record->ip.empty() ? 1 : 0;
    result_.without_user += record->user.empty() ? 1 : 0;
    result_.without_host += record->host.empty() ? 1 : 0;
    records_.push_back(*record);
    lines_.push_back(result_.lines);
  }

  void Flush() {
    if (records_.empty()) return;
    result_.candidate->Decide(at_, records_, limited_);
    if (result_.current != nullptr) {
      result_.current->Decide(at_, records_, before_);
    } else {
      before_.assign(records_.size(), false);
    }
    for (std::size_t i = 0; i < records_.size(); ++i) {
      result_.timeline.Add(at_, limited_[i], before_[i]);
      if (result_.current == nullptr) continue;
      result_.newly_limited += limited_[i] && !before_[i] ? 1 : 0;
      result_.newly_allowed += !limited_[i] && before_[i] ? 1 : 0;
      if (limited_[i] != before_[i]) NoteDifference(i);
    }
    records_.clear();
    lines_.clear();
  }

  access_log::Format format() const { return parser_.format(); }

 private:
  void NoteDifference(std::size_t i) {
    if (result_.differences.size() >= max_differences_) return;
    const access_log::Record& record = records_[i];
    const Trial& refusing = limited_[i] ? *result_.candidate : *result_.current;
    result_.differences.push_back({.line = lines_[i],
                                   .at = at_,
                                   .method = std::string(record.method),
                                   .route = std::string(record.route),
                                   .ip = std::string(record.ip),
                                   .user = std::string(record.user),
                                   .newly_limited = limited_[i],
                                   .policy = refusing.LimitedBy(i)});
  }

  void Malformed(std::string_view line) {
    ++result_.malformed;
    if (result_.examples.size() >= kExamples) return;
    result_.examples.push_back("line " + std::to_string(result_.lines) + ": " + Shown(line, 80));
  }

  ReplayResult& result_;
  const std::size_t max_differences_;
  access_log::LineParser parser_;
  std::vector<access_log::Record> records_;  // with the same time
  std::vector<std::uint64_t> lines_;         // the numbers of their lines
  Nanos at_ = 0;
  std::vector<bool> limited_;
  std::vector<bool> before_;
};

}  // namespace

Result<ReplayResult> Replay(const ReplayOptions& options) {
  ReplayResult result;
  result.rules = options.rules;
  auto candidate = Trial::Open(options.candidate, options.rules, options.max_keys, options.domain);
  if (!candidate.ok()) return candidate.error();
  result.candidate = std::move(*candidate);
  if (!options.current.empty()) {
    auto current = Trial::Open(options.current, options.rules, options.max_keys, options.domain);
    if (!current.ok()) return current.error();
    result.current = std::move(*current);
  }
  LineReader reader(options.log);
  if (!reader.ok()) return Error{Code::kInvalidArgument, options.log + ": cannot be read"};
  Run run(options, result);
  for (std::string_view block = reader.NextBlock(); !block.empty(); block = reader.NextBlock()) {
    while (!block.empty()) {
      const std::size_t end = std::min(block.find('\n'), block.size());
      run.Line(block.substr(0, end));
      block.remove_prefix(std::min(end + 1, block.size()));
    }
    run.Flush();
    if (options.on_progress) options.on_progress(reader.part(), result.lines);
  }
  if (reader.damaged()) {
    return Error{Code::kInvalidArgument, options.log + ": is truncated or damaged"};
  }
  result.format = run.format();
  return result;
}

}  // namespace weir::app
