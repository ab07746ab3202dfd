#include "tests/benchmark/tcp_contender.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <deque>

#include "base/log.h"
#include "tests/benchmark/tcp_socket.h"

namespace parasol {
namespace {

// Receives what has arrived whenever it can't send, so that neither side waits
// for the other one to read.
class TcpSession : public Session {
 public:
  explicit TcpSession(int port) : socket_(TcpSocket::Connect(port)) {}

  void Start(const VariableExchange& exchange) override {
    const size_t count = exchange.gradient.empty() ? exchange.values.size()
                                                   : exchange.gradient.size();
    Start({.kind = TcpRequest::kVariable,
           .push = !exchange.gradient.empty(),
           .pull = !exchange.values.empty(),
           .variable = static_cast<uint32_t>(exchange.variable),
           .count = static_cast<uint32_t>(count)},
          {}, exchange.gradient, exchange.values);
  }

  void StartRows(const RowExchange& exchange) override {
    Start({.kind = TcpRequest::kRows,
           .push = !exchange.gradients.empty(),
           .pull = !exchange.values.empty(),
           .count = static_cast<uint32_t>(exchange.ids.size())},
          exchange.ids, exchange.gradients, exchange.values);
  }

  void Finish() override {
    while (received_ == 0) Receive(/*flags=*/0);
    awaited_.pop_front();
    --received_;
  }

 private:
  struct Reply {
    char* to = nullptr;
    size_t missing = 0;
  };

  template <typename T>
  static iovec Bytes(absl::Span<T> span) {
    return {const_cast<std::remove_const_t<T>*>(span.data()),
            span.size() * sizeof(T)};
  }

  void Start(const TcpRequest& request, absl::Span<const uint64_t> ids,
             absl::Span<const float> gradient, absl::Span<float> values) {
    const iovec reply =
        values.empty() ? Bytes(absl::MakeSpan(done_)) : Bytes(values);
    awaited_.push_back({static_cast<char*>(reply.iov_base), reply.iov_len});
    Send(
        {Bytes(absl::MakeConstSpan(&request, 1)), Bytes(ids), Bytes(gradient)});
  }

  void Send(std::array<iovec, 3> parts) {
    msghdr message = {};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    while (message.msg_iovlen > 0) {
      ssize_t sent =
          sendmsg(socket_.fd(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent < 0) {
        CHECK(errno == EAGAIN);
        ReceiveUntilWritable();
        continue;
      }
      while (message.msg_iovlen > 0 &&
             sent >= static_cast<ssize_t>(message.msg_iov->iov_len)) {
        sent -= message.msg_iov->iov_len;
        ++message.msg_iov;
        --message.msg_iovlen;
      }
      if (message.msg_iovlen == 0) return;
      message.msg_iov->iov_base =
          static_cast<char*>(message.msg_iov->iov_base) + sent;
      message.msg_iov->iov_len -= sent;
    }
  }

  void ReceiveUntilWritable() {
    pollfd wait = {
        .fd = socket_.fd(), .events = POLLIN | POLLOUT, .revents = 0};
    while ((wait.revents & POLLOUT) == 0) {
      CHECK(poll(&wait, 1, /*timeout=*/-1) == 1);
      if ((wait.revents & POLLIN) != 0) Receive(MSG_DONTWAIT);
    }
  }

  void Receive(int flags) {
    Reply& reply = awaited_[received_];
    const ssize_t n = recv(socket_.fd(), reply.to, reply.missing, flags);
    CHECK(n > 0);
    reply.to += n;
    reply.missing -= n;
    if (reply.missing == 0) ++received_;
  }

  TcpSocket socket_;
  std::array<char, 4> done_;
  std::deque<Reply> awaited_;
  size_t received_ = 0;  // number of received replies at the front of awaited_
};

}  // namespace

Contender MakeTcpContender(const std::string& name, const Contents& contents,
                           int streams, RowStore store) {
  Contender contender = {
      .name = name,
      .server = std::make_unique<ServerProcess>(
          store == RowStore::kUnorderedMap ? "tcp_unordered_map" : "tcp",
          contents)};
  contender.sessions = ConnectTcp(contender.server->port(), streams);
  return contender;
}

std::vector<std::unique_ptr<Session>> ConnectTcp(int port, int streams) {
  std::vector<std::unique_ptr<Session>> sessions;
  for (int i = 0; i < streams; ++i) {
    sessions.push_back(std::make_unique<TcpSession>(port));
  }
  return sessions;
}

}  // namespace parasol
