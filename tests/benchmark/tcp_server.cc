#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "base/log.h"
#include "tests/benchmark/tcp_contender.h"
#include "tests/benchmark/tcp_socket.h"

namespace parasol {
namespace {

// What is received and applied, or gathered and sent, at once: 256 KiB.
constexpr size_t kPieceElements = 65536;

class Connection {
 public:
  Connection(int fd, const Contents& contents, RowStore store,
             PlainVariables& variables)
      : socket_(fd),
        variables_(variables),
        width_(contents.row_width),
        rows_(width_ == 0 ? nullptr : MakePlainRows(contents, store)),
        piece_(kPieceElements) {}

  void Serve() {
    TcpRequest request;
    while (socket_.ReadAll(&request, sizeof(request))) {
      if (request.kind == TcpRequest::kRows) {
        ExchangeRows(request);
      } else {
        ExchangeVariable(request);
      }
      if (request.pull == 0) socket_.WriteAll(&request.count, 4);
    }
  }

 private:
  void ExchangeVariable(const TcpRequest& request) {
    for (size_t at = 0; request.push != 0 && at < request.count;) {
      const size_t n = std::min<size_t>(kPieceElements, request.count - at);
      CHECK(socket_.ReadAll(piece_.data(), n * sizeof(float)));
      variables_.Apply(request.variable, at, n, piece_.data());
      at += n;
    }
    if (request.pull != 0) {
      socket_.WriteAll(variables_.values(request.variable).data(),
                       request.count * sizeof(float));
    }
  }

  void ExchangeRows(const TcpRequest& request) {
    ids_.resize(request.count);
    CHECK(socket_.ReadAll(ids_.data(), ids_.size() * sizeof(ids_[0])));
    if (request.push != 0) {
      ForEachPiece([this](absl::Span<const uint64_t> ids, size_t bytes) {
        CHECK(socket_.ReadAll(piece_.data(), bytes));
        rows_->Push(ids, piece_.data());
      });
    }
    if (request.pull != 0) {
      ForEachPiece([this](absl::Span<const uint64_t> ids, size_t bytes) {
        rows_->Pull(ids, piece_.data());
        socket_.WriteAll(piece_.data(), bytes);
      });
    }
  }

  template <typename Function>
  void ForEachPiece(Function function) {
    const size_t rows = kPieceElements / width_;
    for (size_t at = 0; at < ids_.size(); at += rows) {
      const auto ids = absl::MakeConstSpan(ids_).subspan(at, rows);
      function(ids, ids.size() * width_ * sizeof(float));
    }
  }

  TcpSocket socket_;
  PlainVariables& variables_;
  const size_t width_;
  const std::unique_ptr<PlainRows> rows_;
  std::vector<uint64_t> ids_;
  std::vector<float> piece_;
};

void AcceptConnections(TcpListener& listener, const Contents& contents,
                       RowStore store, PlainVariables& variables) {
  while (true) {
    const int fd = listener.Accept();
    std::thread([=, &variables] {
      Connection(fd, contents, store, variables).Serve();
    }).detach();
  }
}

}  // namespace

void ServeTcp(const Contents& contents, RowStore store) {
  PlainVariables variables(contents);
  TcpListener listener;
  std::thread accepting(
      [&] { AcceptConnections(listener, contents, store, variables); });
  ServeUntilKilled(listener.port());
}

}  // namespace parasol
