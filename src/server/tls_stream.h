#pragma once

// A TlsSession on an asio socket, for doors that do their I/O the asio way: it reads and writes
// like the socket it wraps. The handshake happens within the first read. OpenSSL and heavy asio
// headers stay in the .cc file, so handlers are type-erased here.

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/system/error_code.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

#include "server/connection.h"
#include "server/tls.h"

namespace weir::server {

/// One read and one write may be under way at a time. Thread safety: belongs to its reactor's
/// thread.
class TlsStream {
 public:
  using executor_type = boost::asio::io_context::executor_type;
  using Handler = std::function<void(boost::system::error_code, std::size_t)>;

  TlsStream(Socket socket, std::unique_ptr<TlsSession> session);
  ~TlsStream();
  TlsStream(TlsStream&&) noexcept;
  TlsStream& operator=(TlsStream&&) noexcept;

  executor_type get_executor() noexcept { return next_layer().get_executor(); }
  Socket& next_layer() noexcept;
  const TlsSession& session() const noexcept;
  /// Tells the peer that no more is sent. The socket stays open.
  void Close();

  /// As asio's: at least one byte, or an error; boost::asio::error::eof when the peer has closed.
  template <typename Handle>
  void async_read_some(const boost::asio::mutable_buffer& buffer, Handle handle) {
    Read({static_cast<char*>(buffer.data()), buffer.size()}, std::move(handle));
  }

  /// As asio's; takes all of the first buffer that is not empty. Requires that a read has
  /// completed.
  template <typename Buffers, typename Handle>
  void async_write_some(const Buffers& buffers, Handle handle) {
    boost::asio::const_buffer first;
    for (auto i = boost::asio::buffer_sequence_begin(buffers);
         i != boost::asio::buffer_sequence_end(buffers) && first.size() == 0; ++i) {
      first = *i;
    }
    Write({static_cast<const char*>(first.data()), first.size()}, std::move(handle));
  }

 private:
  struct State;
  void Read(std::span<char> plain, Handler handler);
  void Write(std::string_view plain, Handler handler);

  // Shared with pending operations: the stream itself may be moved meanwhile.
  std::shared_ptr<State> state_;
};

}  // namespace weir::server
