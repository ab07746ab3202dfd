#ifndef PARASOL_THIRD_PARTY_CUDA_ON_HOST_COMMUNICATOR_H_
#define PARASOL_THIRD_PARTY_CUDA_ON_HOST_COMMUNICATOR_H_

#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "third_party/cuda_on_host/collective.h"
#include "third_party/cuda_on_host/tasks.h"

// NCCL's communicators and how the ranks' calls meet. All functions need the
// runtime's lock, held once where they wait.
namespace cuda_on_host {

struct Clique;
struct RemoteLink;
using CliquePtr = std::shared_ptr<Clique>;

// One rank's part in an operation. A collective operation waits for the parts
// of all ranks, a message for the parts of its two ends.
struct Part {
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  Shape shape = {};
  Buffers buffers = {};
  // The other rank of a message; otherwise negative.
  int peer = -1;

  // Set when it is enqueued: its rank, the work before it, its end as the
  // stream sees it, and the number of the calling thread, 0 in a group.
  int rank = 0;
  TaskPtr before = nullptr;
  TaskPtr end = nullptr;
  int64_t alone = 0;
};

// A collective operation that some ranks have joined.
struct Meeting {
  std::vector<Part> parts;
  bool is_broken = false;  // a rank that had joined has aborted
};

// All ranks that communicate with each other.
struct Clique {
  int size = 0;
  std::vector<int> devices;  // one per rank; -1: not there yet
  bool has_aborted = false;
  // The connection to the others, if ranks may be in other processes: then the
  // clique has this process's rank alone.
  std::shared_ptr<RemoteLink> remote = nullptr;
  // The operation with number `first_meeting` and those after it.
  int64_t first_meeting = 0;
  std::deque<Meeting> meetings;
  // Parts without their counterparts, by (from, to).
  std::map<std::pair<int, int>, std::deque<Part>> sends, receives;
};

}  // namespace cuda_on_host

struct ncclComm {
  cuda_on_host::CliquePtr clique;
  int rank = 0;
  int device = 0;
  int64_t meetings = 0;  // number of those that it has joined
  // Factors of the operations that were made for it.
  std::map<int, double> factors = {};
};

namespace cuda_on_host {

// Makes the communicator of a rank whose device the clique knows.
ncclComm_t NewCommunicator(const CliquePtr& clique, int rank, int device);
bool IsLive(ncclComm_t comm);
void Delete(ncclComm_t comm);

// Enqueues parts which one group has, each behind what is on its stream now,
// and beside each other.
void EnqueueParts(std::vector<Part> parts);

// Ends the communicator's part in all that is not complete.
void AbandonParts(ncclComm_t comm);

}  // namespace cuda_on_host

#endif  // PARASOL_THIRD_PARTY_CUDA_ON_HOST_COMMUNICATOR_H_
