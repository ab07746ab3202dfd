#include "cluster/client/shard_stream.h"

#include <utility>

#include "absl/status/statusor.h"
#include "base/log.h"

namespace parasol {
namespace {

constexpr char kMethod[] = "/parasol.wire.ParameterService/Exchange";

}  // namespace

std::shared_ptr<ShardStream> ShardStream::Make(
    const std::shared_ptr<grpc::Channel>& channel, grpc::CompletionQueue& queue,
    size_t lane, Observer& observer, std::atomic<bool>& offers_memory) {
  std::shared_ptr<ShardStream> stream(
      new ShardStream(channel, queue, lane, observer, offers_memory));
  stream->self_ = stream;
  return stream;
}

ShardStream::ShardStream(const std::shared_ptr<grpc::Channel>& channel,
                         grpc::CompletionQueue& queue, size_t lane,
                         Observer& observer, std::atomic<bool>& offers_memory)
    : lane_(lane),
      observer_(observer),
      offers_memory_(offers_memory),
      channel_(channel) {
  context_.set_wait_for_ready(true);
  call_ = grpc::GenericStub(channel).PrepareCall(&context_, kMethod, &queue);
}

void ShardStream::Start() {
  if (offers_memory_) OfferMemory();
  call_->StartCall(&started_);
}

// Nothing is lost when the system gives none: a socket does it too.
void ShardStream::OfferMemory() {
  absl::StatusOr<std::unique_ptr<SharedPayloads>> shared =
      SharedPayloads::Create();
  if (shared.ok()) {
    offered_ = *std::move(shared);
    context_.AddMetadata(kSharedMemoryKey, offered_->offer());
  } else if (offers_memory_.exchange(false)) {
    LOG(WARNING) << "tensors go through sockets: " << shared.status().message();
  }
}

void ShardStream::OnStarted(bool ok) {
  if (!ok) return End();
  bool write;
  {
    absl::MutexLock lock(&mu_);
    can_write_ = true;
    write = writing_;
  }
  if (write) call_->Write(outgoing_, &written_);
  call_->Read(&incoming_, &read_);
}

void ShardStream::Write(grpc::ByteBuffer message) {
  {
    absl::MutexLock lock(&mu_);
    if (ending_) return;
    writing_ = true;
    outgoing_ = std::move(message);
    if (!can_write_) return;  // OnStarted will
  }
  call_->Write(outgoing_, &written_);
}

void ShardStream::OnWritten(bool ok) {
  bool ending;
  {
    absl::MutexLock lock(&mu_);
    outgoing_.Clear();
    writing_ = false;
    ending = ending_;
  }
  // A write that failed is followed by a read that fails.
  if (ending) {
    call_->Finish(&status_, &finished_);
  } else if (ok) {
    observer_.OnWritable(lane_);
  }
}

void ShardStream::OnRead(bool ok) {
  if (!ok) return End();
  if (!is_answered_) SeeAnswer();
  grpc::ByteBuffer reply;
  reply.Swap(&incoming_);
  // While the reply is copied out, the next one is received.
  call_->Read(&incoming_, &read_);
  observer_.OnResponse(*this, reply);
}

void ShardStream::SeeAnswer() {
  is_answered_ = true;
  if (offered_ == nullptr) return;
  const auto& metadata = context_.GetServerInitialMetadata();
  const auto answer = metadata.find(kSharedMemoryKey);
  if (answer != metadata.end() && answer->second == kSharedMemoryAccepted) {
    offered_->CloseOffer();
    accepted_.store(true, std::memory_order_release);
  } else {
    offered_.reset();
    offers_memory_ = false;
  }
}

void ShardStream::End() {
  bool write_under_way;
  {
    absl::MutexLock lock(&mu_);
    ending_ = true;
    write_under_way = writing_ && can_write_;
  }
  if (!write_under_way) call_->Finish(&status_, &finished_);
}

void ShardStream::OnFinished(bool) {
  const std::shared_ptr<ShardStream> self = std::move(self_);
  observer_.OnEnd(lane_, status_);
}

}  // namespace parasol
