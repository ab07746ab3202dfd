#include "third_party/cuda_on_host/communicator.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <string>

#include "third_party/cuda_on_host/memory.h"
#include "third_party/cuda_on_host/remote_ranks.h"
#include "third_party/cuda_on_host/runtime.h"
#include "third_party/cuda_on_host/settings.h"

namespace cuda_on_host {
namespace {

std::set<ncclComm_t>& Communicators() {
  static auto* const communicators = new std::set<ncclComm_t>;
  return *communicators;
}

void RequireThere(const void* data, size_t bytes) {
  if (bytes > 0 && !IsInside(data, bytes)) {
    Die("an operation of NCCL names memory that was freed");
  }
}

std::vector<TaskPtr> Befores(const std::vector<Part>& parts) {
  std::vector<TaskPtr> befores;
  for (const Part& part : parts) befores.push_back(part.before);
  return befores;
}

void CarryOut(const std::vector<Part>& parts) {
  const Shape& shape = parts.front().shape;
  const int ranks = static_cast<int>(parts.size());
  std::vector<Buffers> buffers(parts.size());
  for (const Part& part : parts) {
    if (part.buffers.send != nullptr) {
      RequireThere(part.buffers.send, SentBytes(shape, ranks));
      WatchRead(part.buffers.send, SentBytes(shape, ranks));
    }
    RequireThere(part.buffers.receive, ReceivedBytes(shape, ranks));
    WatchWrite(part.buffers.receive, ReceivedBytes(shape, ranks));
    buffers[part.rank] = part.buffers;
  }
  if (shape.count > 0) Perform(shape, buffers);
}

// Two calls that a thread makes one after the other may wait for each other.
void RequireGroup(const Meeting& meeting, const Part& part) {
  if (part.alone == 0) return;
  for (const Part& other : meeting.parts) {
    if (other.alone == part.alone) {
      Die("one thread calls " + Words(part.shape) +
          " for two ranks without ncclGroupStart(), where NCCL may hang");
    }
  }
}

void Join(Part part) {
  Clique& clique = *part.comm->clique;
  const size_t index = part.comm->meetings++ - clique.first_meeting;
  if (index >= clique.meetings.size()) clique.meetings.resize(index + 1);
  Meeting& meeting = clique.meetings[index];
  if (meeting.is_broken) return;
  RequireGroup(meeting, part);
  if (!meeting.parts.empty() && meeting.parts[0].shape != part.shape) {
    Die("ranks of one communicator meet in different operations: " +
        Words(meeting.parts[0].shape) + " and " + Words(part.shape));
  }
  meeting.parts.push_back(std::move(part));
  if (static_cast<int>(meeting.parts.size()) < clique.size) return;
  // Each rank has joined all meetings before, so this is the first one.
  std::vector<Part> parts = std::move(meeting.parts);
  clique.meetings.pop_front();
  ++clique.first_meeting;
  const TaskPtr work = AddTask(
      Kind::kCompute, parts[0].comm->device, [parts] { CarryOut(parts); },
      Befores(parts));
  for (Part& other : parts) Close(*other.end, {work});
}

void Deliver(const Part& send, const Part& receive) {
  if (send.shape != receive.shape) {
    Die("rank " + std::to_string(send.comm->rank) + " sends " +
        std::to_string(send.shape.count) + " elements, and rank " +
        std::to_string(receive.comm->rank) + " receives " +
        std::to_string(receive.shape.count));
  }
  const size_t bytes = send.shape.count * BytesOf(send.shape.type);
  const auto copy = [from = send.buffers.send, to = receive.buffers.receive,
                     bytes] {
    RequireThere(from, bytes);
    RequireThere(to, bytes);
    WatchRead(from, bytes);
    WatchWrite(to, bytes);
    std::memmove(to, from, bytes);
  };
  const TaskPtr work = AddTask(Kind::kCompute, receive.comm->device, copy,
                               {send.before, receive.before});
  Close(*send.end, {work});
  Close(*receive.end, {work});
}

void JoinMessage(Part part) {
  Clique& clique = *part.comm->clique;
  const bool sends = part.buffers.send != nullptr;
  const auto key = sends ? std::make_pair(part.comm->rank, part.peer)
                         : std::make_pair(part.peer, part.comm->rank);
  std::deque<Part>& others = sends ? clique.receives[key] : clique.sends[key];
  if (others.empty()) {
    (sends ? clique.sends : clique.receives)[key].push_back(std::move(part));
    return;
  }
  const Part other = std::move(others.front());
  others.pop_front();
  sends ? Deliver(part, other) : Deliver(other, part);
}

void Abandon(std::deque<Part>& parts, ncclComm_t comm) {
  for (const Part& part : parts) {
    if (part.comm == comm) Close(*part.end, {});
  }
  std::erase_if(parts, [comm](const Part& part) { return part.comm == comm; });
}

}  // namespace

ncclComm_t NewCommunicator(const CliquePtr& clique, int rank, int device) {
  const auto comm =
      new ncclComm{.clique = clique, .rank = rank, .device = device};
  Communicators().insert(comm);
  return comm;
}

bool IsLive(ncclComm_t comm) { return Communicators().contains(comm); }

void Delete(ncclComm_t comm) {
  Communicators().erase(comm);
  delete comm;
}

void EnqueueParts(std::vector<Part> parts) {
  std::map<cudaStream_t, std::vector<TaskPtr>> ends;
  for (Part& part : parts) {
    if (part.comm->clique->remote != nullptr) EnqueueRemote(part);
  }
  std::erase_if(parts, [](const Part& part) {
    return part.comm->clique->remote != nullptr;
  });
  for (Part& part : parts) {
    part.rank = part.comm->rank;
    part.before = part.stream->last;
    part.end = AddOpenTask(part.comm->device);
    ends[part.stream].push_back(part.end);
  }
  for (Part& part : parts) {
    if (part.peer < 0) {
      Join(std::move(part));
    } else {
      JoinMessage(std::move(part));
    }
  }
  for (auto& [stream, last] : ends) {
    stream->last =
        AddTask(Kind::kNone, stream->device, nullptr, std::move(last));
  }
  Advance();
}

void AbandonParts(ncclComm_t comm) {
  Clique& clique = *comm->clique;
  clique.has_aborted = true;
  if (clique.remote != nullptr) LeaveHub(*clique.remote);
  for (Meeting& meeting : clique.meetings) {
    for (const Part& part : meeting.parts) {
      if (part.comm != comm) continue;
      Close(*part.end, {});
      meeting.is_broken = true;
    }
  }
  for (auto& [ends, parts] : clique.sends) Abandon(parts, comm);
  for (auto& [ends, parts] : clique.receives) Abandon(parts, comm);
}

}  // namespace cuda_on_host
