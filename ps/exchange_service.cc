#include "ps/exchange_service.h"

#include <utility>

#include "base/status_macros.h"
#include "cluster/rpc/chunk.h"
#include "cluster/rpc/status.h"
#include "cluster/rpc/tensor_frame.h"
#include "proto/parameter.pb.h"

namespace parasol {
namespace {

// Of one stream; the message that passes a limit is still answered.
constexpr size_t kMaxWaitingResponses = 64;
constexpr size_t kMaxWaitingBytes = 32 << 20;

}  // namespace

ExchangeStream::ExchangeStream(ParameterServer& server, PsMetrics& metrics,
                               std::function<void(ExchangeStream*)> on_done)
    : server_(server), metrics_(metrics), on_done_(std::move(on_done)) {
  metrics_.streams.Add(1);
  absl::MutexLock lock(&mu_);
  ReadMore();
}

void ExchangeStream::End(absl::Status status) {
  {
    absl::MutexLock lock(&mu_);
    if (!end_.has_value()) end_ = std::move(status);
  }
  FinishWhenSent();
}

void ExchangeStream::OnReadDone(bool ok) {
  if (!ok) {
    // The worker has said all that it had to, or is gone.
    End(absl::OkStatus());
    return;
  }
  {
    absl::MutexLock lock(&mu_);
    if (end_.has_value()) return;
    answering_ = true;
  }
  absl::StatusOr<grpc::ByteBuffer> response = Answer(request_);
  request_.Clear();
  {
    absl::MutexLock lock(&mu_);
    answering_ = false;
    if (response.ok()) {
      reading_ = false;
      Send(*std::move(response));
      ReadMore();
    } else {
      metrics_.malformed_requests_total.Add();
      if (!end_.has_value()) end_ = response.status();
    }
  }
  FinishWhenSent();
}

void ExchangeStream::OnWriteDone(bool ok) {
  {
    absl::MutexLock lock(&mu_);
    response_bytes_ -= responses_.front().Length();
    responses_.pop_front();
    if (!ok) {
      responses_.clear();
      if (!end_.has_value()) end_ = absl::CancelledError("the worker is gone");
    }
    if (!responses_.empty()) StartWrite(&responses_.front());
    ReadMore();
  }
  FinishWhenSent();
}

void ExchangeStream::OnDone() {
  metrics_.streams.Add(-1);
  on_done_(this);
  delete this;
}

absl::StatusOr<grpc::ByteBuffer> ExchangeStream::Answer(
    const grpc::ByteBuffer& request) {
  wire::RequestHeader header;
  ASSIGN_OR_RETURN(
      const ReceivedFrame frame,
      ReceivedFrame::Parse(request, kMaxRangesPerMessage, &header));
  const ParameterServer::Reply reply =
      server_.Exchange(header, frame.payloads());
  return EncodeFrame(reply.header, reply.payloads);
}

void ExchangeStream::Send(grpc::ByteBuffer response) {
  response_bytes_ += response.Length();
  responses_.push_back(std::move(response));
  if (responses_.size() == 1) StartWrite(&responses_.front());
}

void ExchangeStream::ReadMore() {
  if (reading_ || end_.has_value() ||
      responses_.size() > kMaxWaitingResponses ||
      response_bytes_ > kMaxWaitingBytes) {
    return;
  }
  reading_ = true;
  StartRead(&request_);
}

void ExchangeStream::FinishWhenSent() {
  absl::Status status;
  {
    absl::MutexLock lock(&mu_);
    if (!end_.has_value() || answering_ || !responses_.empty() || finished_) {
      return;
    }
    finished_ = true;
    status = *end_;
  }
  // Not under the lock: OnDone() may delete this meanwhile.
  Finish(ToGrpcStatus(status));
}

}  // namespace parasol
