#include "tests/simulation/group/simulated_collective.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "cluster/collective/contribution_memory.h"
#include "cluster/collective/frame_header.h"
#include "tests/simulation/group/group_planner.h"

namespace parasol::simulation {
namespace {

// How often a group's thread looks at the time.
constexpr absl::Duration kTick = absl::Milliseconds(50);
// Small enough that variables travel in several pieces.
constexpr size_t kChunkBytes = 16;

GroupProtocol::Options Protocol(const Shape& shape) {
  GroupProtocol::Options options;
  options.chunk_bytes = kChunkBytes;
  options.algorithm = AlgorithmOf(shape);
  return options;
}

}  // namespace

SimulatedCollective::SimulatedCollective(
    World& world, Process& process, ProcessThreads& threads,
    ProtocolPoints& points, const CollectiveGroup& group,
    std::map<int, std::unique_ptr<WireEnd>> wires, std::function<void()> on_end)
    : world_(world),
      process_(process),
      threads_(threads),
      points_(points),
      on_end_(std::move(on_end)),
      protocol_(group, Protocol(world.schedule().shape), threads.Now()),
      wires_(std::move(wires)) {
  for (auto& [rank, wire] : wires_) {
    wire->OnMessage([this, rank = rank](const WireMessage& message) {
      Receive(rank, message);
    });
  }
  Tick();
}

SimulatedCollective::~SimulatedCollective() {
  on_end_();
  Leave(absl::CancelledError("the rank has left the group"));
  RunCompletions();
  *is_there_ = false;
}

void SimulatedCollective::Begin(const OperationSpec& spec,
                                OperationMemory memory, Done done) {
  ++pending_;
  protocol_.Begin(spec, std::move(memory), std::move(done));
  if (!threads_.is_abandoned()) points_.Reach();
  Flush();
  RunCompletions();
}

absl::Status SimulatedCollective::Await() {
  threads_.Await([this] { return pending_ == 0; }, absl::InfiniteDuration());
  return status();
}

void SimulatedCollective::Abort(const absl::Status& why) {
  protocol_.Abort(why);
  Flush();
  RunCompletions();
}

std::shared_ptr<float[]> SimulatedCollective::AllocateContribution(
    size_t count) {
  return AllocateElements(count);
}

void SimulatedCollective::Leave(const absl::Status& why) {
  protocol_.Leave(why);
  Flush();
  for (auto& [rank, wire] : wires_) wire->Close();
}

void SimulatedCollective::Abandon() {
  for (auto& [rank, wire] : wires_) wire->Close();
  protocol_.Abort(absl::CancelledError("the process is gone"));
  Flush();
  RunCompletions();
}

void SimulatedCollective::Receive(int peer, const WireMessage& message) {
  if (message.is_end) {
    protocol_.OnClosed(peer, "the connection was closed");
  } else {
    const auto header =
        FrameHeader::Parse(message.header.data(), group().epoch);
    if (!header.ok()) {
      protocol_.OnNonsense(peer, header.status());
    } else if (std::byte* const target = protocol_.OnHeader(peer, *header)) {
      std::memcpy(target, message.bytes.data(),
                  std::min<size_t>(message.bytes.size(), header->bytes));
      protocol_.OnBytes(peer, *header);
    }
  }
  Flush();
  RunCompletions();
}

void SimulatedCollective::Tick() {
  protocol_.Tick(threads_.Now());
  Flush();
  RunCompletions();
  if (!protocol_.status().ok()) return;
  world_.After(process_, kTick, [this, is_there = is_there_] {
    if (*is_there) Tick();
  });
}

// What leaves is copied at once, as a socket with room takes it.
void SimulatedCollective::Flush() {
  while (true) {
    std::vector<GroupProtocol::Frame> frames = protocol_.TakeFrames();
    for (const GroupProtocol::Frame& frame : frames) {
      const auto header = frame.header.Encode();
      WireMessage message{.header = std::string(header.data(), header.size()),
                          .bytes = frame.own};
      if (!frame.payload.empty()) {
        message.bytes.assign(
            reinterpret_cast<const char*>(frame.payload.data()),
            frame.payload.size());
      }
      wires_.at(frame.peer)->Send(std::move(message));
      protocol_.Sent(frame);
    }
    if (frames.empty()) break;
  }
  if (!protocol_.status().ok() && !std::exchange(has_released_, true)) {
    protocol_.ReleaseOperations();
  }
}

void SimulatedCollective::RunCompletions() {
  std::vector<GroupProtocol::Completion> completions =
      protocol_.TakeCompletions();
  for (GroupProtocol::Completion& each : completions) {
    each.done(each.status);
    --pending_;
  }
}

}  // namespace parasol::simulation
