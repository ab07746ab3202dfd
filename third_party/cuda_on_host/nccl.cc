// NCCL's interface, with its checks of arguments.

#include <nccl.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>

#include "third_party/cuda_on_host/communicator.h"
#include "third_party/cuda_on_host/memory.h"
#include "third_party/cuda_on_host/remote_ranks.h"
#include "third_party/cuda_on_host/runtime.h"
#include "third_party/cuda_on_host/settings.h"

namespace cuda_on_host {
namespace {

// Communicator that a rank asks for in a group, which is made at its end.
struct Request {
  ncclComm_t* result;
  CliquePtr clique;
  int rank, device;
};

// State of a thread between ncclGroupStart() and ncclGroupEnd().
struct Group {
  int depth = 0;
  ncclResult_t failure = ncclSuccess;
  std::vector<Part> parts;
  std::vector<Request> requests;
};
thread_local Group group;

// Cliques that some ranks have joined, by their ids.
std::map<std::string, CliquePtr>& Cliques() {
  static auto* const cliques = new std::map<std::string, CliquePtr>;
  return *cliques;
}

ncclResult_t Refuse(ncclResult_t result) {
  if (group.depth > 0 && group.failure == ncclSuccess) group.failure = result;
  return result;
}

// From 1. The system uses the ids of threads that have ended again.
int64_t NumberOfThread() {
  static std::atomic<int64_t> threads{0};
  thread_local const int64_t number = ++threads;
  return number;
}

CliquePtr NewClique(int size) {
  auto clique = std::make_shared<Clique>();
  clique->size = size;
  clique->devices.assign(size, -1);
  return clique;
}

bool IsComplete(const Clique& clique) {
  return std::count(clique.devices.begin(), clique.devices.end(), -1) == 0;
}

bool HasDevice(const Clique& clique, int device) {
  return std::count(clique.devices.begin(), clique.devices.end(), device) > 0;
}

// Makes the communicators, then waits until the other ranks have made theirs.
void Meet(const std::vector<Request>& requests) {
  for (const Request& request : requests) {
    *request.result =
        NewCommunicator(request.clique, request.rank, request.device);
  }
  Notify();
  for (const Request& request : requests) {
    AwaitOthers([&] { return IsComplete(*request.clique); },
                "ranks of a communicator that do not come");
  }
}

// Returns true if a device's kernel may touch all of it: memory of the device,
// or pinned memory.
bool IsOn(const void* data, size_t bytes, int device) {
  if (bytes == 0) return true;
  if (data == nullptr || !IsInside(data, bytes)) return false;
  const int place = FindAllocation(data)->device;
  return place == device || place == kPinned;
}

bool IsKnown(const ncclComm& comm, ncclRedOp_t op) {
  return (op >= 0 && op < ncclNumOps) || comm.factors.contains(op);
}

// What NCCL checks if it is told to (NCCL_CHECK_POINTERS), and its ranges.
ncclResult_t Check(const Part& part) {
  if (!IsLive(part.comm)) return ncclInvalidArgument;
  const ncclComm& comm = *part.comm;
  const int ranks = comm.clique->size;
  if (BytesOf(part.shape.type) == 0) return ncclInvalidArgument;
  if (part.shape.root < 0 || part.shape.root >= ranks || part.peer >= ranks) {
    return ncclInvalidArgument;
  }
  if (!IsLive(part.stream) || part.stream->device != comm.device) {
    return ncclUnhandledCudaError;
  }
  if (part.stream->capture != nullptr) return ncclInvalidUsage;
  if (part.buffers.send != nullptr &&
      !IsOn(part.buffers.send, SentBytes(part.shape, ranks), comm.device)) {
    return ncclInvalidArgument;
  }
  const bool receives = part.peer < 0 || part.buffers.send == nullptr;
  if (receives && !IsOn(part.buffers.receive, ReceivedBytes(part.shape, ranks),
                        comm.device)) {
    return ncclInvalidArgument;
  }
  return part.peer >= 0 ||
                 MayOverlapSo(part.shape, part.buffers, comm.rank, ranks)
             ? ncclSuccess
             : ncclInvalidArgument;
}

// Enqueues a part of a rank that does not block. NCCL may say so, and wants to
// be asked until the part is under way.
ncclResult_t EnqueueUnblocked(Part part, RemoteLink& link) {
  if (!link.is_complete || link.in_progress > 0 || part.peer >= 0) {
    return Refuse(ncclInvalidArgument);
  }
  std::vector<Part> parts;
  parts.push_back(std::move(part));
  EnqueueParts(std::move(parts));
  link.in_progress = static_cast<int>(TheRandom().Below(4));
  return link.in_progress > 0 ? ncclInProgress : ncclSuccess;
}

ncclResult_t Enqueue(Part part) {
  const ncclResult_t checked = Check(part);
  if (checked != ncclSuccess) return Refuse(checked);
  if (RemoteLink* const link = part.comm->clique->remote.get()) {
    return EnqueueUnblocked(std::move(part), *link);
  }
  if (group.depth > 0) {
    group.parts.push_back(std::move(part));
    return ncclSuccess;
  }
  part.alone = NumberOfThread();
  std::vector<Part> parts;
  parts.push_back(std::move(part));
  EnqueueParts(std::move(parts));
  return ncclSuccess;
}

ncclResult_t EnqueueReduction(Part part) {
  if (!IsLive(part.comm) || !IsReducible(part.shape.type) ||
      !IsKnown(*part.comm, part.shape.reduce) ||
      (part.buffers.send == nullptr && part.shape.count > 0)) {
    return Refuse(ncclInvalidArgument);
  }
  const auto factor = part.comm->factors.find(part.shape.reduce);
  if (factor != part.comm->factors.end()) {
    // The handles of ranks may differ.
    part.shape.reduce = ncclSum;
    part.shape.factor = factor->second;
  }
  return Enqueue(std::move(part));
}

ncclResult_t EnqueueMessage(Part part) {
  if (part.peer < 0 ||
      (part.buffers.send == nullptr && part.buffers.receive == nullptr)) {
    return Refuse(ncclInvalidArgument);
  }
  return Enqueue(std::move(part));
}

}  // namespace
}  // namespace cuda_on_host

using namespace cuda_on_host;

#define NCCL_ENTER()                                            \
  const std::lock_guard<std::recursive_mutex> lock(TheLock());  \
  if (LostStatus() != 0) return Refuse(ncclUnhandledCudaError); \
  if (const int fault = FaultOf(__func__)) return Refuse(ncclResult_t(fault))

ncclResult_t ncclGetVersion(int* version) {
  NCCL_ENTER();
  if (version == nullptr) return ncclInvalidArgument;
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclSystemError:
      return "unhandled system error";
    case ncclInternalError:
      return "internal error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
  }
  return "unknown result code";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* uniqueId) {
  NCCL_ENTER();
  static int64_t ids = 0;
  if (uniqueId == nullptr) return ncclInvalidArgument;
  *uniqueId = {};
  ++ids;
  StartHub(*uniqueId);
  std::memcpy(uniqueId->internal + NCCL_UNIQUE_ID_BYTES - sizeof(ids), &ids,
              sizeof(ids));
  return ncclSuccess;
}

ncclResult_t ncclCommInitAll(ncclComm_t* comm, int ndev, const int* devlist) {
  NCCL_ENTER();
  if (comm == nullptr || ndev < 1) return ncclInvalidArgument;
  const CliquePtr clique = NewClique(ndev);
  std::vector<Request> requests;
  for (int rank = 0; rank < ndev; ++rank) {
    const int device = devlist == nullptr ? rank : devlist[rank];
    if (device < 0 || device >= DeviceCount()) return ncclUnhandledCudaError;
    if (HasDevice(*clique, device)) return ncclInvalidUsage;
    clique->devices[rank] = device;
    requests.push_back({&comm[rank], clique, rank, device});
  }
  Meet(requests);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId,
                              int rank) {
  NCCL_ENTER();
  if (comm == nullptr || nranks < 1 || rank < 0 || rank >= nranks) {
    return Refuse(ncclInvalidArgument);
  }
  CliquePtr& clique =
      Cliques()[std::string(commId.internal, sizeof(commId.internal))];
  if (clique == nullptr) clique = NewClique(nranks);
  const int device = CurrentDevice();
  if (clique->size != nranks || clique->devices[rank] >= 0 ||
      HasDevice(*clique, device)) {
    return Refuse(ncclInvalidUsage);
  }
  clique->devices[rank] = device;
  const Request request = {comm, clique, rank, device};
  if (group.depth > 0) {
    group.requests.push_back(request);
  } else {
    Meet({request});
  }
  return ncclSuccess;
}

// Ranks of any process of this machine. A rank that does not block has to ask
// ncclCommGetAsyncError() until all have come.
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks,
                                    ncclUniqueId commId, int rank,
                                    ncclConfig_t* config) {
  NCCL_ENTER();
  if (comm == nullptr || nranks < 1 || rank < 0 || rank >= nranks ||
      config == nullptr || config->magic != kNcclConfigMagic ||
      config->blocking != 0) {
    return Refuse(ncclInvalidArgument);
  }
  const CliquePtr clique = NewClique(nranks);
  clique->devices[rank] = CurrentDevice();
  clique->remote = JoinHub(commId, nranks, rank, clique);
  if (clique->remote == nullptr) return Refuse(ncclSystemError);
  *comm = NewCommunicator(clique, rank, clique->devices[rank]);
  return ncclInProgress;
}

// What the rank has joined is carried out first, as NCCL does.
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  NCCL_ENTER();
  if (!IsLive(comm)) return ncclInvalidArgument;
  AwaitAll(comm->device);
  Delete(comm);
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const std::lock_guard<std::recursive_mutex> lock(TheLock());
  if (!IsLive(comm)) return ncclInvalidArgument;
  AbandonParts(comm);
  Delete(comm);
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError) {
  NCCL_ENTER();
  if (!IsLive(comm) || asyncError == nullptr) return ncclInvalidArgument;
  *asyncError = comm->clique->has_aborted ? ncclRemoteError : ncclSuccess;
  RemoteLink* const link = comm->clique->remote.get();
  if (link == nullptr) return ncclSuccess;
  // What is asked for again and again is done in the end.
  Advance();
  if (comm->clique->has_aborted) {
    *asyncError = !link->is_complete || !link->tells_of_loss ? ncclInProgress
                                                             : ncclRemoteError;
    if (link->is_complete && !link->tells_of_loss) *asyncError = ncclSuccess;
  } else if (!link->is_complete || link->in_progress > 0) {
    link->in_progress = std::max(0, link->in_progress - 1);
    *asyncError = ncclInProgress;
  }
  return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  NCCL_ENTER();
  if (!IsLive(comm) || count == nullptr) return ncclInvalidArgument;
  *count = comm->clique->size;
  return ncclSuccess;
}

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) {
  NCCL_ENTER();
  if (!IsLive(comm) || device == nullptr) return ncclInvalidArgument;
  *device = comm->device;
  return ncclSuccess;
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  NCCL_ENTER();
  if (!IsLive(comm) || rank == nullptr) return ncclInvalidArgument;
  *rank = comm->rank;
  return ncclSuccess;
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar,
                                      ncclDataType_t datatype,
                                      ncclScalarResidence_t residence,
                                      ncclComm_t comm) {
  NCCL_ENTER();
  if (!IsLive(comm) || op == nullptr || scalar == nullptr ||
      !IsReducible(datatype)) {
    return ncclInvalidArgument;
  }
  // A scalar on the device would be read when the operation runs.
  if (residence != ncclScalarHostImmediate) return ncclInvalidUsage;
  int handle = ncclNumOps;
  while (comm->factors.contains(handle)) ++handle;
  comm->factors[handle] = ReadScalar(scalar, datatype);
  *op = static_cast<ncclRedOp_t>(handle);
  return ncclSuccess;
}

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
  NCCL_ENTER();
  if (!IsLive(comm) || comm->factors.erase(op) == 0) return ncclInvalidArgument;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  NCCL_ENTER();
  ++group.depth;
  return ncclSuccess;
}

// Enqueues nothing if one of the group's calls has failed.
ncclResult_t ncclGroupEnd() {
  const std::lock_guard<std::recursive_mutex> lock(TheLock());
  if (group.depth == 0) return ncclInvalidUsage;
  if (--group.depth > 0) return ncclSuccess;
  Group ended;
  std::swap(ended, group);
  if (const int fault = FaultOf(__func__)) ended.failure = ncclResult_t(fault);
  if (ended.failure != ncclSuccess) return ended.failure;
  Meet(ended.requests);
  EnqueueParts(std::move(ended.parts));
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                           ncclDataType_t datatype, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  NCCL_ENTER();
  return EnqueueReduction({.comm = comm,
                           .stream = stream,
                           .shape = {.operation = Operation::kAllReduce,
                                     .count = count,
                                     .type = datatype,
                                     .reduce = op},
                           .buffers = {sendbuff, recvbuff}});
}

ncclResult_t ncclReduceScatter(const void* sendbuff, void* recvbuff,
                               size_t recvcount, ncclDataType_t datatype,
                               ncclRedOp_t op, ncclComm_t comm,
                               cudaStream_t stream) {
  NCCL_ENTER();
  return EnqueueReduction({.comm = comm,
                           .stream = stream,
                           .shape = {.operation = Operation::kReduceScatter,
                                     .count = recvcount,
                                     .type = datatype,
                                     .reduce = op},
                           .buffers = {sendbuff, recvbuff}});
}

ncclResult_t ncclAllGather(const void* sendbuff, void* recvbuff,
                           size_t sendcount, ncclDataType_t datatype,
                           ncclComm_t comm, cudaStream_t stream) {
  NCCL_ENTER();
  if (sendbuff == nullptr && sendcount > 0) return Refuse(ncclInvalidArgument);
  return Enqueue({.comm = comm,
                  .stream = stream,
                  .shape = {.operation = Operation::kAllGather,
                            .count = sendcount,
                            .type = datatype},
                  .buffers = {sendbuff, recvbuff}});
}

// What ranks other than the root send is not read.
ncclResult_t ncclBroadcast(const void* sendbuff, void* recvbuff, size_t count,
                           ncclDataType_t datatype, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  NCCL_ENTER();
  const bool sends = IsLive(comm) && comm->rank == root;
  if (sends && sendbuff == nullptr && count > 0) {
    return Refuse(ncclInvalidArgument);
  }
  return Enqueue({.comm = comm,
                  .stream = stream,
                  .shape = {.operation = Operation::kBroadcast,
                            .count = count,
                            .type = datatype,
                            .root = root},
                  .buffers = {sends ? sendbuff : nullptr, recvbuff}});
}

ncclResult_t ncclSend(const void* sendbuff, size_t count,
                      ncclDataType_t datatype, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  NCCL_ENTER();
  return EnqueueMessage({.comm = comm,
                         .stream = stream,
                         .shape = {.count = count, .type = datatype},
                         .buffers = {.send = sendbuff},
                         .peer = peer});
}

ncclResult_t ncclRecv(void* recvbuff, size_t count, ncclDataType_t datatype,
                      int peer, ncclComm_t comm, cudaStream_t stream) {
  NCCL_ENTER();
  return EnqueueMessage({.comm = comm,
                         .stream = stream,
                         .shape = {.count = count, .type = datatype},
                         .buffers = {.receive = recvbuff},
                         .peer = peer});
}
