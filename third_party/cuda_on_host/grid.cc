// Grids: the blocks of a grid run one after the other in random order. The
// threads of a block are fibers, of which one runs at a time. A fiber runs
// thread after thread, and stops where one has to wait: then another fiber goes
// on.

#include <cuda_runtime.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "third_party/cuda_on_host/check.h"
#include "third_party/cuda_on_host/counts.h"
#include "third_party/cuda_on_host/fiber.h"
#include "third_party/cuda_on_host/runtime.h"
#include "third_party/cuda_on_host/settings.h"

uint3 threadIdx;
uint3 blockIdx;
dim3 blockDim;
dim3 gridDim;

extern char __start_cuda_on_host_shared[] __attribute__((weak));
extern char __stop_cuda_on_host_shared[] __attribute__((weak));

long long clock64() {
  static long long now = 0;
  return now += 1'000'000;
}

namespace cuda_on_host {

Runner runner;

namespace {

constexpr int kLanes = 32;
constexpr int kMaxThreads = 1024;

struct Warp {
  unsigned int mask = 0;
  unsigned int arrived = 0;
  int round = 0;
  uint64_t values[2][kLanes];
  Place place = {};
};

// The block that runs.
struct Block {
  int threads = 0;
  int started = 0;
  int finished = 0;
  // Order in which threads start: first, first + step, …
  int first = 0, step = 1;
  std::vector<int> ready;
  std::vector<int> at_barrier;
  Place barrier = {};
  std::vector<bool> has_left;
  std::vector<Fiber*> fiber;  // of each thread that has started and waits
  std::vector<Warp> warps;
  bool used_barrier = true;
};

Block block;
const std::function<void()>* body = nullptr;
Fiber scheduler;
Fiber* current = nullptr;

// Fibers that wait for a thread to run; a program may end with some.
std::vector<Fiber*>& Idle() {
  static auto* const idle = new std::vector<Fiber*>;
  return *idle;
}

std::string Words(Place place) {
  const std::string file = place.file;
  return file.substr(file.rfind('/') + 1) + ":" + std::to_string(place.line);
}

void Select(int thread) {
  runner.thread = thread;
  threadIdx.x = thread % blockDim.x;
  threadIdx.y = thread / blockDim.x % blockDim.y;
  threadIdx.z = thread / (blockDim.x * blockDim.y);
}

int NextUnstarted() {
  return static_cast<int>(
      (block.first + int64_t{block.step} * block.started++) % block.threads);
}

void ToScheduler() { current->SwitchTo(scheduler); }

// Stops the running thread until the scheduler takes it again.
void Wait() {
  const int self = runner.thread;
  block.fiber[self] = current;
  ToScheduler();
  Select(self);
}

void FiberMain() {
  for (;;) {
    while (block.started < block.threads) {
      const int thread = NextUnstarted();
      Select(thread);
      (*body)();
      block.has_left[runner.thread] = true;
      ++block.finished;
    }
    Idle().push_back(current);
    ToScheduler();
  }
}

Fiber* IdleFiber() {
  if (Idle().empty()) return new Fiber(FiberMain);
  Fiber* const fiber = Idle().back();
  Idle().pop_back();
  return fiber;
}

[[noreturn]] void DieOfDeadlock() {
  if (!block.at_barrier.empty()) {
    Die("the barrier at " + Words(block.barrier) + " was reached by " +
        std::to_string(block.at_barrier.size()) + " of " +
        std::to_string(block.threads) + " threads of a block");
  }
  for (const Warp& warp : block.warps) {
    if (warp.arrived == 0) continue;
    Die("the shuffle at " + Words(warp.place) +
        " waits for lanes that do not come");
  }
  Die("the threads of a block wait for nothing");
}

void ReleaseBarrier() {
  block.ready.insert(block.ready.end(), block.at_barrier.begin(),
                     block.at_barrier.end());
  block.at_barrier.clear();
  PassBarrier();
}

// Lets one fiber run until it stops.
void RunSome() {
  const size_t choices =
      block.ready.size() + (block.started < block.threads ? 1 : 0);
  if (choices == 0) DieOfDeadlock();
  const size_t choice = TheRandom().Below(choices);
  if (choice < block.ready.size()) {
    std::swap(block.ready[choice], block.ready.back());
    const int thread = block.ready.back();
    block.ready.pop_back();
    current = block.fiber[thread];
  } else {
    current = IdleFiber();
  }
  runner.stack = current->stack();
  scheduler.SwitchTo(*current);
  runner.thread = -1;
}

void Begin(int threads) {
  StartBlock();
  if (block.used_barrier) {
    std::fill(__start_cuda_on_host_shared, __stop_cuda_on_host_shared, '\xff');
  }
  block.used_barrier = false;
  block.threads = threads;
  block.started = block.finished = 0;
  block.first = static_cast<int>(TheRandom().Below(threads));
  do {
    block.step = 1 + static_cast<int>(TheRandom().Below(threads));
  } while (std::gcd(block.step, threads) != 1);
  block.has_left.assign(threads, false);
  block.fiber.assign(threads, nullptr);
  block.warps.assign((threads + kLanes - 1) / kLanes, Warp());
}

void RunBlock(int threads) {
  Begin(threads);
  while (block.finished < threads) RunSome();
}

uint64_t Count(dim3 size) { return uint64_t{size.x} * size.y * size.z; }

void RunGrid(int device, dim3 grid, dim3 threads,
             const std::function<void()>& thread) {
  runner.device = device;
  gridDim = grid;
  blockDim = threads;
  body = &thread;
  block.used_barrier = true;
  runner.stack_bytes = Fiber::kStackBytes;
  StartGrid();
  // Grids have stacks and shared memory in common.
  static const Moment last_grid = NewMoment();
  ComeAfter(last_grid);
  const uint64_t blocks = Count(grid);
  const uint64_t first = TheRandom().Below(blocks);
  uint64_t step = 1;
  do {
    step = 1 + TheRandom().Below(blocks);
  } while (std::gcd(step, blocks) != 1);
  for (uint64_t i = 0; i < blocks; ++i) {
    const uint64_t index = (first + i * step) % blocks;
    runner.block = index;
    blockIdx.x = index % grid.x;
    blockIdx.y = index / grid.x % grid.y;
    blockIdx.z = index / grid.x / grid.y;
    RunBlock(static_cast<int>(Count(threads)));
  }
  EndGrid();
  ComeBefore(last_grid);
  body = nullptr;
}

bool IsLegal(dim3 grid, dim3 threads) {
  constexpr unsigned int kMaxGridX = 0x7fffffff, kMaxGrid = 0xffff;
  if (Count(grid) == 0 || Count(threads) == 0) return false;
  return grid.x <= kMaxGridX && grid.y <= kMaxGrid && grid.z <= kMaxGrid &&
         threads.x <= kMaxThreads && threads.y <= kMaxThreads &&
         threads.z <= 64 && Count(threads) <= kMaxThreads;
}

// Returns the lanes of the warp that exist.
unsigned int Existing(int warp) {
  const int lanes = std::min(kLanes, block.threads - warp * kLanes);
  return lanes == kLanes ? ~0u : (1u << lanes) - 1;
}

void CheckMask(const Warp& warp, unsigned int mask, int index, Place place) {
  const unsigned int lane = 1u << Lane();
  if ((mask & lane) == 0) {
    Die("the shuffle at " + Words(place) + " leaves its own lane out");
  }
  if (warp.arrived != 0 &&
      (warp.mask != mask || warp.place.line != place.line)) {
    Die("lanes of a warp meet in different shuffles, at " + Words(place) +
        " and " + Words(warp.place));
  }
  for (int i = 0; i < kLanes; ++i) {
    const int thread = index * kLanes + i;
    if ((mask >> i & 1) != 0 && thread < block.threads &&
        block.has_left[thread]) {
      Die("the shuffle at " + Words(place) + " waits for a lane that has left");
    }
  }
}

}  // namespace

void LaunchGrid(dim3 grid, dim3 threads, cudaStream_t stream,
                std::function<void()> thread) {
  const std::lock_guard<std::recursive_mutex> lock(TheLock());
  if (const cudaError_t fault = FaultOfRuntime("kernel")) {
    Fail(fault);
    return;
  }
  if (!IsLegal(grid, threads)) {
    Invalidate(stream);
    Fail(cudaErrorInvalidConfiguration);
    return;
  }
  if (!IsLive(stream) || stream->device != CurrentDevice()) {
    Fail(cudaErrorInvalidResourceHandle);
    return;
  }
  ++TheCounts().kernels;
  static_cast<void>(Enqueue(
      stream, Kind::kCompute,
      [device = stream->device, grid, threads, thread = std::move(thread)] {
        RunGrid(device, grid, threads, thread);
      }));
}

unsigned int Lane() { return runner.thread % kLanes; }

void Barrier(Place place) {
  const Unchecked unchecked;
  block.used_barrier = true;
  if (block.finished > 0) {
    Die("the barrier at " + Words(place) + " is reached when " +
        std::to_string(block.finished) + " of " +
        std::to_string(block.threads) + " threads of the block have left");
  }
  if (!block.at_barrier.empty() && block.barrier.line != place.line) {
    Die("threads of a block wait at different barriers, at " + Words(place) +
        " and " + Words(block.barrier));
  }
  block.barrier = place;
  block.at_barrier.push_back(runner.thread);
  if (static_cast<int>(block.at_barrier.size()) == block.threads) {
    ReleaseBarrier();
  }
  Wait();
}

uint64_t Shuffle(unsigned int mask, uint64_t value, unsigned int source,
                 Place place) {
  const Unchecked unchecked;
  const int index = runner.thread / kLanes;
  Warp& warp = block.warps[index];
  CheckMask(warp, mask, index, place);
  if (source >= kLanes || (mask & Existing(index) & (1u << source)) == 0) {
    Die("the shuffle at " + Words(place) + " reads a lane that is not in it");
  }
  warp.mask = mask;
  warp.place = place;
  const int round = warp.round;
  warp.values[round][Lane()] = value;
  warp.arrived |= 1u << Lane();
  if (warp.arrived != (mask & Existing(index))) {
    Wait();
    return warp.values[round][source];
  }
  for (int i = 0; i < kLanes; ++i) {
    if ((warp.arrived >> i & 1) != 0 && i != static_cast<int>(Lane())) {
      block.ready.push_back(index * kLanes + i);
    }
  }
  warp.arrived = 0;
  warp.round ^= 1;
  return warp.values[round][source];
}

void SetChecked(bool is_checked) {
  runner.is_checked = is_checked;
  is_checked ? BeginWatch() : EndWatch();
}

void AtomicAccess(void* address, size_t bytes) {
  if (runner.is_checked) {
    const Unchecked unchecked;
    WatchWrite(address, bytes);
  }
  CheckAccess(address, bytes, Access::kAtomic);
}

void MayYield() {
  if (!runner.is_checked) return;
  const Unchecked unchecked;
  if (TheRandom().Below(8) != 0) return;
  block.ready.push_back(runner.thread);
  Wait();
}

}  // namespace cuda_on_host
