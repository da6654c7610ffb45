#pragma once

#include <boost/asio/io_context.hpp>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "store/key_list.h"
#include "weir/result.h"

namespace weir::app {

/// Reads lists of keys from a remote store on a thread of its own, one page at a time, so that
/// reactors never wait for it and the store is never busy with it for long.
///
/// Thread-safe.
class KeyReader {
 public:
  using Read = std::function<Result<store::KeyPage>(const store::KeyQuery&)>;
  using Done = std::function<void(Result<store::KeyPage>)>;

  /// `read` blocks.
  explicit KeyReader(Read read) : read_(std::move(read)), thread_([this] { Work(); }) {}
  /// Waits for the page being read; pending callers are not called back.
  ~KeyReader();
  KeyReader(const KeyReader&) = delete;
  KeyReader& operator=(const KeyReader&) = delete;

  /// `done` runs on `io`, also with kResourceExhausted if too many wait already.
  void Ask(store::KeyQuery query, boost::asio::io_context& io, Done done);

 private:
  static constexpr std::size_t kMaxWaiting = 16;

  struct Asked {
    store::KeyQuery query;
    boost::asio::io_context* io;
    Done done;
  };

  void Work();

  const Read read_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Asked> waiting_;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace weir::app
