#include "cluster/rpc/control_channel.h"

#include <utility>

#include "cluster/rpc/channel.h"

namespace parasol {

ControlChannel::ControlChannel(const std::string& address, Callee callee)
    : address_(address),
      callee_(std::move(callee)),
      channel_(MakeControlChannel(address_, callee_)) {}

std::shared_ptr<grpc::Channel> ControlChannel::Get() const {
  absl::MutexLock lock(&mu_);
  return channel_;
}

void ControlChannel::NoteResult(const std::shared_ptr<grpc::Channel>& used,
                                const grpc::Status& status) {
  if (status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED) return;
  absl::MutexLock lock(&mu_);
  if (channel_ == used) channel_ = MakeControlChannel(address_, callee_);
}

void ControlChannel::Drop() {
  absl::MutexLock lock(&mu_);
  channel_ = MakeControlChannel(address_, callee_);
}

}  // namespace parasol
