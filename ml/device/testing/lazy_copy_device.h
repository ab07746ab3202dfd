#ifndef PARASOL_ML_DEVICE_TESTING_LAZY_COPY_DEVICE_H_
#define PARASOL_ML_DEVICE_TESTING_LAZY_COPY_DEVICE_H_

#include <array>
#include <cstddef>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ml/device/cpu_device.h"
#include "ml/device/device.h"

namespace parasol {

// A CPU that keeps device and host memory apart like a CUDA device, and copies
// between them as late as the order of the streams allows. A caller that
// neither orders streams nor waits reads the values from before the copy.
// Kernels run at once.
class LazyCopyDevice : public CpuDevice {
 public:
  LazyCopyDevice() : CpuDevice(/*threads=*/1) {}

  bool shares_host_memory() const override { return false; }

  absl::Status Order(Stream earlier, Stream later) override {
    if (earlier != Stream::kCompute) Finish(earlier, Get(earlier).enqueued);
    return absl::OkStatus();
  }
  absl::StatusOr<std::unique_ptr<Event>> NewEvent() override {
    return std::make_unique<Mark>();
  }
  absl::Status Record(Stream stream, Event& event) override {
    static_cast<Mark&>(event) = Mark(stream, Get(stream).enqueued);
    return absl::OkStatus();
  }
  absl::Status Follow(Event& event, Stream later) override {
    return LazyCopyDevice::Wait(event);
  }
  absl::Status Wait(Event& event) override {
    const Mark& mark = static_cast<Mark&>(event);
    Finish(mark.stream, mark.position);
    return absl::OkStatus();
  }
  absl::Status Synchronize() override {
    for (Stream stream : {Stream::kCopyIn, Stream::kCopyOut}) {
      Finish(stream, Get(stream).enqueued);
    }
    return absl::OkStatus();
  }

 protected:
  absl::Status CopyBytes(Stream stream, const void* from, void* to,
                         size_t bytes) override {
    Queue& queue = Get(stream);
    queue.pending.push_back({from, to, bytes});
    ++queue.enqueued;
    if (stream == Stream::kCompute) Finish(stream, queue.enqueued);
    return absl::OkStatus();
  }

  // Returns true if a pending copy reads or writes one of `bytes` at `data`.
  bool IsInUse(const void* data, size_t bytes) const {
    const std::less<const char*> is_before;
    const char* const begin = static_cast<const char*>(data);
    const auto overlaps = [&](const void* other, size_t size) {
      const char* const first = static_cast<const char*>(other);
      return is_before(first, begin + bytes) && is_before(begin, first + size);
    };
    for (const Queue& queue : queues_) {
      for (const PendingCopy& copy : queue.pending) {
        if (overlaps(copy.from, copy.bytes) || overlaps(copy.to, copy.bytes)) {
          return true;
        }
      }
    }
    return false;
  }

  // Waits for all pending copies before it frees, as CUDA does.
  void Free(void* data, bool on_host) override {
    Synchronize().IgnoreError();
    CpuDevice::Free(data, on_host);
  }

 private:
  struct Mark : Event {
    Mark() = default;
    Mark(Stream stream, size_t position) : stream(stream), position(position) {}
    Stream stream = Stream::kCompute;
    size_t position = 0;
  };
  struct PendingCopy {
    const void* from;
    void* to;
    size_t bytes;
  };
  struct Queue {
    std::deque<PendingCopy> pending;
    size_t enqueued = 0;
    size_t finished = 0;
  };

  Queue& Get(Stream stream) { return queues_[static_cast<size_t>(stream)]; }

  void Finish(Stream stream, size_t position) {
    Queue& queue = Get(stream);
    for (; queue.finished < position; ++queue.finished) {
      const PendingCopy copy = queue.pending.front();
      queue.pending.pop_front();
      if (copy.bytes > 0) std::memcpy(copy.to, copy.from, copy.bytes);
    }
  }

  std::array<Queue, 3> queues_;
};

}  // namespace parasol

#endif  // PARASOL_ML_DEVICE_TESTING_LAZY_COPY_DEVICE_H_
