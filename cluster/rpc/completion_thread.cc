#include "cluster/rpc/completion_thread.h"

namespace parasol {

CompletionThread::CompletionThread()
    : thread_([this] {
        void* tag;
        bool ok;
        while (queue_.Next(&tag, &ok)) {
          static_cast<Operation*>(tag)->Completed(ok);
        }
      }) {}

CompletionThread::~CompletionThread() {
  queue_.Shutdown();
  thread_.join();
}

}  // namespace parasol
