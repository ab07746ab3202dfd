#ifndef PARASOL_CLUSTER_RPC_COMPLETION_THREAD_H_
#define PARASOL_CLUSTER_RPC_COMPLETION_THREAD_H_

#include <memory>
#include <thread>

#include "grpcpp/completion_queue.h"

namespace parasol {

// A thread that polls gRPC for completed operations. It stands in for gRPC's
// callback API, whose threads (of version 1.51) sleep for 100 ms after each
// second without work, and whatever arrives then waits.
//
// Shutdown: start no more operations, then call the destructor, which joins the
// thread after the last operation has completed.
class CompletionThread {
 public:
  // The object that a completed operation of the queue calls: gRPC's tag is a
  // pointer to it.
  class Tag {
   public:
    virtual ~Tag() = default;
    // Called on the completion thread.
    virtual void Completed(bool ok) = 0;
  };

  CompletionThread();
  explicit CompletionThread(std::unique_ptr<grpc::CompletionQueue> queue);
  ~CompletionThread();
  CompletionThread(const CompletionThread&) = delete;
  CompletionThread& operator=(const CompletionThread&) = delete;

  // The queue. All its tags must be Tags.
  grpc::CompletionQueue& queue() { return *queue_; }

 private:
  const std::unique_ptr<grpc::CompletionQueue> queue_;
  std::thread thread_;
};

// A tag that calls a member function of its owner.
template <typename Owner>
class MemberTag : public CompletionThread::Tag {
 public:
  MemberTag(Owner* owner, void (Owner::*completed)(bool))
      : owner_(owner), completed_(completed) {}

  void Completed(bool ok) override { (owner_->*completed_)(ok); }

 private:
  Owner* const owner_;
  void (Owner::*const completed_)(bool);
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_RPC_COMPLETION_THREAD_H_
