#include "cluster/rpc/control_channel.h"

#include "cluster/rpc/channel.h"

namespace parasol {

ControlChannel::ControlChannel(const std::string& address)
    : address_(address), channel_(MakeControlChannel(address)) {}

std::shared_ptr<grpc::Channel> ControlChannel::Get() const {
  absl::MutexLock lock(&mu_);
  return channel_;
}

void ControlChannel::NoteResult(const std::shared_ptr<grpc::Channel>& used,
                                const grpc::Status& status) {
  if (status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED) return;
  absl::MutexLock lock(&mu_);
  if (channel_ == used) channel_ = MakeControlChannel(address_);
}

void ControlChannel::Drop() {
  absl::MutexLock lock(&mu_);
  channel_ = MakeControlChannel(address_);
}

}  // namespace parasol
