#include "cluster/rpc/completion_thread.h"

#include <utility>

namespace parasol {

CompletionThread::CompletionThread()
    : CompletionThread(std::make_unique<grpc::CompletionQueue>()) {}

CompletionThread::CompletionThread(std::unique_ptr<grpc::CompletionQueue> queue)
    : queue_(std::move(queue)), thread_([this] {
        void* tag;
        bool ok;
        while (queue_->Next(&tag, &ok)) {
          static_cast<Tag*>(tag)->Completed(ok);
        }
      }) {}

CompletionThread::~CompletionThread() {
  queue_->Shutdown();
  thread_.join();
}

}  // namespace parasol
