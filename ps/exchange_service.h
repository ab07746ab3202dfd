#ifndef PARASOL_PS_EXCHANGE_SERVICE_H_
#define PARASOL_PS_EXCHANGE_SERVICE_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "ps/parameter_server.h"
#include "ps/ps_metrics.h"

namespace parasol {

// One Exchange stream: its requests are answered in order, each on the gRPC
// thread that delivers it. While too many responses wait for their reader, no
// request is read, so that a worker that doesn't read holds little memory.
//
// Deletes itself after `on_done`.
class ExchangeStream
    : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  // `server` and `metrics` must outlive it.
  ExchangeStream(ParameterServer& server, PsMetrics& metrics,
                 std::function<void(ExchangeStream*)> on_done);

  // Reads no more, sends the answers to what it has read, then ends the stream
  // with `status`. Not after `on_done`.
  void End(absl::Status status) ABSL_LOCKS_EXCLUDED(mu_);

  void OnReadDone(bool ok) override ABSL_LOCKS_EXCLUDED(mu_);
  void OnWriteDone(bool ok) override ABSL_LOCKS_EXCLUDED(mu_);
  void OnDone() override;

 private:
  absl::StatusOr<grpc::ByteBuffer> Answer(const grpc::ByteBuffer& request);
  void Send(grpc::ByteBuffer response) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ReadMore() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FinishWhenSent() ABSL_LOCKS_EXCLUDED(mu_);

  ParameterServer& server_;
  PsMetrics& metrics_;
  const std::function<void(ExchangeStream*)> on_done_;

  // Written by gRPC from StartRead() to OnReadDone().
  grpc::ByteBuffer request_;

  absl::Mutex mu_;
  bool reading_ ABSL_GUARDED_BY(mu_) = false;
  bool answering_ ABSL_GUARDED_BY(mu_) = false;
  // The first one is being written.
  std::deque<grpc::ByteBuffer> responses_ ABSL_GUARDED_BY(mu_);
  size_t response_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mu_);
  bool finished_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace parasol

#endif  // PARASOL_PS_EXCHANGE_SERVICE_H_
