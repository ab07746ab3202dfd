#ifndef PARASOL_CLUSTER_RPC_CONTROL_CHANNEL_H_
#define PARASOL_CLUSTER_RPC_CONTROL_CHANNEL_H_

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "cluster/trust/trust.h"
#include "grpcpp/channel.h"
#include "grpcpp/support/status.h"

namespace parasol {

// The channel to one address for unary calls, with another connection after a
// call that was not answered in time: the old one may be dead without having
// been closed, and would keep the calls that follow as well. Thread-safe.
class ControlChannel {
 public:
  explicit ControlChannel(const std::string& address, Callee callee = {});

  // Returns the channel for the next call.
  std::shared_ptr<grpc::Channel> Get() const ABSL_LOCKS_EXCLUDED(mu_);

  // Notes the result of a call over `used`. After DEADLINE_EXCEEDED the next
  // call gets another channel; other calls over `used` go on.
  void NoteResult(const std::shared_ptr<grpc::Channel>& used,
                  const grpc::Status& status) ABSL_LOCKS_EXCLUDED(mu_);

  // Gives the next call another channel, which reaches the process that is at
  // the address then; calls in progress go on.
  void Drop() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const std::string address_;
  const Callee callee_;
  mutable absl::Mutex mu_;
  std::shared_ptr<grpc::Channel> channel_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_RPC_CONTROL_CHANNEL_H_
