#include "storage/tier/read_ring.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/log.h"

namespace parasol {
namespace {

// Reads that are under way: more than most disks carry out at a time.
constexpr unsigned kEntries = 128;

// Results that are waited for at once: whoever is woken for each has no time
// for other work.
constexpr size_t kAtOnce = 32;

template <typename T>
T* At(std::byte* memory, uint32_t offset) {
  return reinterpret_cast<T*>(memory + offset);
}

std::byte* MapRing(int ring, size_t bytes, off_t offset) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_POPULATE, ring, offset);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

}  // namespace

std::unique_ptr<ReadRing> ReadRing::CreateIfThere() {
  io_uring_params params = {};
  Descriptor ring(
      static_cast<int>(syscall(__NR_io_uring_setup, kEntries, &params)));
  // Kernels before 5.6 lack the operation.
  constexpr uint32_t kNeeded = IORING_FEAT_SINGLE_MMAP | IORING_FEAT_RW_CUR_POS;
  if (!ring.is_open() || (params.features & kNeeded) != kNeeded) return nullptr;
  std::unique_ptr<ReadRing> made(new ReadRing(std::move(ring), params));
  if (!made->Map()) return nullptr;
  return made;
}

ReadRing::ReadRing(Descriptor ring, const io_uring_params& params)
    : ring_(std::move(ring)),
      params_(params),
      queue_bytes_(std::max<size_t>(
          params.sq_off.array + params.sq_entries * sizeof(unsigned),
          params.cq_off.cqes + params.cq_entries * sizeof(io_uring_cqe))) {}

ReadRing::~ReadRing() {
  if (entries_ != nullptr) {
    munmap(entries_, params_.sq_entries * sizeof(io_uring_sqe));
  }
  if (queues_ != nullptr) munmap(queues_, queue_bytes_);
}

bool ReadRing::Map() {
  queues_ = MapRing(ring_.get(), queue_bytes_, IORING_OFF_SQ_RING);
  std::byte* const entries = MapRing(
      ring_.get(), params_.sq_entries * sizeof(io_uring_sqe), IORING_OFF_SQES);
  entries_ = reinterpret_cast<io_uring_sqe*>(entries);
  if (queues_ == nullptr || entries_ == nullptr) return false;
  const io_sqring_offsets& sq = params_.sq_off;
  const io_cqring_offsets& cq = params_.cq_off;
  order_ = At<unsigned>(queues_, sq.array);
  results_ = At<io_uring_cqe>(queues_, cq.cqes);
  submitted_ = {.head = At<unsigned>(queues_, sq.head),
                .tail = At<unsigned>(queues_, sq.tail),
                .mask = *At<unsigned>(queues_, sq.ring_mask)};
  completed_ = {.head = At<unsigned>(queues_, cq.head),
                .tail = At<unsigned>(queues_, cq.tail),
                .mask = *At<unsigned>(queues_, cq.ring_mask)};
  return true;
}

void ReadRing::Submit(int descriptor, const TierFile::Reading& reading,
                      size_t number) {
  const unsigned tail = *submitted_.tail;
  const unsigned i = tail & submitted_.mask;
  io_uring_sqe& entry = entries_[i];
  std::memset(&entry, 0, sizeof(entry));
  entry.opcode = IORING_OP_READ;
  entry.fd = descriptor;
  entry.off = reading.offset;
  entry.addr = reinterpret_cast<uintptr_t>(reading.out.data());
  entry.len = static_cast<uint32_t>(reading.out.size());
  entry.user_data = number;
  order_[i] = i;
  std::atomic_ref(*submitted_.tail).store(tail + 1, std::memory_order_release);
}

void ReadRing::Enter(unsigned count, unsigned wanted) {
  while (true) {
    const long taken = syscall(__NR_io_uring_enter, ring_.get(), count, wanted,
                               IORING_ENTER_GETEVENTS, nullptr, 0);
    if (taken < 0) {
      CHECK(errno == EINTR || errno == EAGAIN || errno == EBUSY)
          << "io_uring_enter: " << strerror(errno);
      continue;
    }
    count -= static_cast<unsigned>(taken);
    if (count == 0) return;
  }
}

std::vector<size_t> ReadRing::Read(
    int descriptor, absl::Span<const TierFile::Reading> readings) {
  std::vector<size_t> left;
  size_t next = 0;
  size_t done = 0;
  while (done < readings.size()) {
    unsigned count = 0;
    for (; next < readings.size() && next - done < params_.sq_entries;
         ++next, ++count) {
      Submit(descriptor, readings[next], next);
    }
    Enter(count, static_cast<unsigned>(std::min(next - done, kAtOnce)));
    unsigned head = *completed_.head;
    const unsigned tail =
        std::atomic_ref(*completed_.tail).load(std::memory_order_acquire);
    for (; head != tail; ++head, ++done) {
      const io_uring_cqe& result = results_[head & completed_.mask];
      const size_t number = result.user_data;
      if (result.res != static_cast<int>(readings[number].out.size())) {
        left.push_back(number);
      }
    }
    std::atomic_ref(*completed_.head).store(head, std::memory_order_release);
  }
  return left;
}

}  // namespace parasol
