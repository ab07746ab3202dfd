// Captures of streams, and graphs.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <utility>

#include "third_party/cuda_on_host/counts.h"
#include "third_party/cuda_on_host/runtime.h"
#include "third_party/cuda_on_host/settings.h"

namespace cuda_on_host {
namespace {

std::vector<std::weak_ptr<Capture>>& Captures() {
  static auto* const captures = new std::vector<std::weak_ptr<Capture>>;
  return *captures;
}

// Returns true if all nodes come before the end of the stream on which the
// capture began.
bool IsJoined(const CUgraph_st& graph, const std::vector<size_t>& tail) {
  std::vector<bool> seen(graph.nodes.size());
  std::vector<size_t> open = tail;
  while (!open.empty()) {
    const size_t node = open.back();
    open.pop_back();
    if (seen[node]) continue;
    seen[node] = true;
    const std::vector<size_t>& after = graph.nodes[node].after;
    open.insert(open.end(), after.begin(), after.end());
  }
  return std::all_of(seen.begin(), seen.end(), [](bool one) { return one; });
}

// Returns the nodes in a random order in which each stands behind all that it
// waits for.
std::vector<size_t> RandomOrder(const CUgraph_st& graph) {
  std::vector<size_t> waits(graph.nodes.size());
  std::vector<std::vector<size_t>> before(graph.nodes.size());
  std::vector<size_t> ready;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    waits[i] = graph.nodes[i].after.size();
    for (size_t other : graph.nodes[i].after) before[other].push_back(i);
    if (waits[i] == 0) ready.push_back(i);
  }
  std::vector<size_t> order;
  while (!ready.empty()) {
    std::swap(ready[TheRandom().Below(ready.size())], ready.back());
    order.push_back(ready.back());
    ready.pop_back();
    for (size_t next : before[order.back()]) {
      if (--waits[next] == 0) ready.push_back(next);
    }
  }
  return order;
}

// Adds the graph's nodes as tasks behind `first`. Returns a task that waits for
// all of them.
TaskPtr AddTasks(const CUgraph_st& graph, cudaStream_t stream,
                 const TaskPtr& first) {
  std::vector<TaskPtr> tasks(graph.nodes.size());
  for (size_t i : RandomOrder(graph)) {
    const CUgraph_st::Node& node = graph.nodes[i];
    std::vector<TaskPtr> after = {first};
    for (size_t other : node.after) after.push_back(tasks[other]);
    tasks[i] = AddTask(node.kind, stream->device, node.run, std::move(after),
                       {.stream = stream, .captured_on = node.captured_on});
    if (!IsLive(node.external)) continue;
    node.external->capture = nullptr;
    // Otherwise the event keeps an older mark, which is over by the time the
    // node has run, as a new mark would be.
    if (ExternalEvents() == Mark::kAtLaunch) node.external->marked = tasks[i];
  }
  tasks.push_back(first);
  return AddTask(Kind::kNone, stream->device, nullptr, std::move(tasks),
                 {.stream = stream});
}

}  // namespace

cudaError_t AddNode(cudaStream_t stream, CUgraph_st::Node node) {
  Capture& capture = *stream->capture;
  if (!capture.is_valid) return Fail(cudaErrorStreamCaptureInvalidated);
  node.after = stream->tail;
  node.captured_on = stream;
  stream->tail = {capture.graph.nodes.size()};
  capture.graph.nodes.push_back(std::move(node));
  return cudaSuccess;
}

bool BreaksCapture() {
  bool breaks = false;
  for (const std::weak_ptr<Capture>& weak : Captures()) {
    const CapturePtr capture = weak.lock();
    if (capture == nullptr || capture->origin == nullptr) continue;
    if (capture->mode == cudaStreamCaptureModeRelaxed) continue;
    if (capture->mode == cudaStreamCaptureModeThreadLocal &&
        capture->thread != std::this_thread::get_id()) {
      continue;
    }
    capture->is_valid = false;
    breaks = true;
  }
  return breaks;
}

void Invalidate(cudaStream_t stream) {
  if (IsLive(stream) && stream->capture != nullptr) {
    stream->capture->is_valid = false;
  }
}

}  // namespace cuda_on_host

using namespace cuda_on_host;

cudaError_t cudaStreamBeginCapture(cudaStream_t stream,
                                   cudaStreamCaptureMode mode) {
  CUDA_ON_HOST_ENTER();
  if (!IsLive(stream)) return Fail(cudaErrorInvalidResourceHandle);
  if (stream->capture != nullptr) return Fail(cudaErrorInvalidValue);
  auto capture = std::make_shared<Capture>();
  capture->origin = stream;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->streams = {stream};
  stream->capture = capture;
  stream->tail.clear();
  std::erase_if(Captures(), [](const auto& weak) { return weak.expired(); });
  Captures().push_back(capture);
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* pGraph) {
  CUDA_ON_HOST_ENTER();
  *pGraph = nullptr;
  if (!IsLive(stream)) return Fail(cudaErrorInvalidResourceHandle);
  const CapturePtr capture = stream->capture;
  if (capture == nullptr) return Fail(cudaErrorInvalidValue);
  if (capture->mode != cudaStreamCaptureModeRelaxed &&
      capture->thread != std::this_thread::get_id()) {
    return Fail(cudaErrorStreamCaptureWrongThread);
  }
  if (capture->origin != stream) {
    capture->is_valid = false;
    return Fail(cudaErrorStreamCaptureUnmatched);
  }
  const bool joined = IsJoined(capture->graph, stream->tail);
  for (cudaStream_t member : capture->streams) {
    if (!IsLive(member)) continue;
    member->capture = nullptr;
    member->tail.clear();
  }
  capture->origin = nullptr;
  if (!capture->is_valid) return Fail(cudaErrorStreamCaptureInvalidated);
  if (!joined) return Fail(cudaErrorStreamCaptureUnjoined);
  *pGraph = new CUgraph_st(std::move(capture->graph));
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
                                  cudaStreamCaptureStatus* pCaptureStatus) {
  CUDA_ON_HOST_ENTER();
  if (!IsLive(stream)) return Fail(cudaErrorInvalidResourceHandle);
  *pCaptureStatus = stream->capture == nullptr ? cudaStreamCaptureStatusNone
                    : stream->capture->is_valid
                        ? cudaStreamCaptureStatusActive
                        : cudaStreamCaptureStatusInvalidated;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* pGraphExec,
                                          cudaGraph_t graph,
                                          unsigned long long flags) {
  CUDA_ON_HOST_ENTER();
  if (graph == nullptr || flags != 0) return Fail(cudaErrorInvalidValue);
  *pGraphExec = new CUgraphExec_st{.graph = *graph};
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  CUDA_ON_HOST_ENTER();
  delete graph;
  return cudaSuccess;
}

// Launches of one executable graph follow each other.
cudaError_t cudaGraphLaunch(cudaGraphExec_t graphExec, cudaStream_t stream) {
  CUDA_ON_HOST_ENTER();
  if (graphExec == nullptr || !IsLive(stream)) {
    return Fail(cudaErrorInvalidResourceHandle);
  }
  if (stream->capture != nullptr) {
    Invalidate(stream);
    return Fail(cudaErrorStreamCaptureUnsupported);
  }
  ++TheCounts().graph_launches;
  const TaskPtr first =
      AddTask(Kind::kNone, stream->device, nullptr,
              {stream->last, graphExec->last}, {.stream = stream});
  stream->last = AddTasks(graphExec->graph, stream, first);
  graphExec->last = stream->last;
  Advance();
  return cudaSuccess;
}

// Also where the call fails since the device was lost: it has nothing then.
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graphExec) {
  const std::unique_ptr<CUgraphExec_st> ended(graphExec);
  CUDA_ON_HOST_ENTER();
  if (graphExec == nullptr) return Fail(cudaErrorInvalidValue);
  return cudaSuccess;
}
