#ifndef PARASOL_THIRD_PARTY_CUDA_ON_HOST_REMOTE_RANKS_H_
#define PARASOL_THIRD_PARTY_CUDA_ON_HOST_REMOTE_RANKS_H_

#include <nccl.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "third_party/cuda_on_host/collective.h"
#include "third_party/cuda_on_host/communicator.h"

// Ranks of a communicator in several processes of a machine. The process that
// makes the id adds for all (a hub): each rank has a connection to it, sends
// what it brings to an operation, and gets what is there for it.
namespace cuda_on_host {

// A rank's connection to the hub. Members other than the queue need the
// runtime's lock.
struct RemoteLink {
  // An operation that was enqueued and has no result yet.
  struct Awaited {
    Part part;
    TaskPtr sent;
  };

  explicit RemoteLink(int fd) : fd(fd) {}
  ~RemoteLink();

  // Ends the calling thread's use of the link: the destructor comes after it.
  // ThreadSanitizer does not see the counts of shared_ptr in code that is not
  // instrumented.
  void EndUse();

  const int fd;
  bool is_complete = false;  // all ranks have come
  bool has_left = false;     // the rank has aborted
  // True if ncclCommGetAsyncError() tells of a rank that is gone. NCCL may, and
  // it may as well wait for it.
  bool tells_of_loss = false;
  // Calls of ncclCommGetAsyncError() that still say ncclInProgress.
  int in_progress = 0;
  std::deque<Awaited> awaited;

  // Messages that a thread of this object's own writes.
  std::mutex queue_mu;
  std::condition_variable queue_changed;
  std::deque<std::string> queue;
  bool queue_ends = false;
};

// Starts a hub on a thread of this process, and makes `id` name it.
void StartHub(ncclUniqueId& id);

// Connects a rank to the hub that `id` names. Null if there is none.
std::shared_ptr<RemoteLink> JoinHub(const ncclUniqueId& id, int size, int rank,
                                    const CliquePtr& clique);

// Enqueues a part of a rank that is connected.
void EnqueueRemote(Part part);

// Ends the rank's part in all that is not complete, and its connection.
void LeaveHub(RemoteLink& link);

}  // namespace cuda_on_host

#endif  // PARASOL_THIRD_PARTY_CUDA_ON_HOST_REMOTE_RANKS_H_
