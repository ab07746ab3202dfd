#ifndef PARASOL_ML_DEVICE_DEVICE_H_
#define PARASOL_ML_DEVICE_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ml/device/elements.h"
#include "ml/device/precision.h"

namespace parasol {

class Device;
class Recorder;

// An array in the memory of a device, or in pinned host memory, which the
// device copies from and to at full speed. Starts zeroed, at a multiple of 64
// bytes. Movable; must not outlive its device.
template <typename T>
class Array {
  static_assert(std::is_trivial_v<T>);

 public:
  Array() = default;

  // Address of the first element. The host must not dereference an address in a
  // CUDA device's memory.
  T* data() const { return data_.get(); }
  size_t size() const { return size_; }
  absl::Span<T> span() const { return absl::MakeSpan(data(), size_); }

 private:
  friend class Device;
  struct Release {
    void operator()(T* data) const;
    Device* device = nullptr;
    bool on_host = false;
  };

  std::unique_ptr<T, Release> data_;
  size_t size_ = 0;
};

// A device on which a model computes. Work is enqueued on streams: the work of
// one stream runs in order, different streams run concurrently. On the CPU
// every call has finished when it returns. Not thread-safe: one thread at a
// time may enqueue kernels and copies of one device. Arrays and events must be
// destroyed before their device.
class Device {
 public:
  enum class Kind { kCpu, kCuda };
  enum class Stream { kCompute, kCopyIn, kCopyOut };

  struct Options {
    // Number of CPU threads per kernel. The default is one because a machine
    // usually runs as many workers as it has cores, and OpenMP's threads spin
    // while they wait: two pools on the same cores are slower than one thread.
    // A worker that has a machine to itself should set the number of cores.
    int threads = 1;
    Precision precision = Precision::kFloat32;
    // True if a CUDA device is to have a recorder(). It has none, and a line in
    // the log, where its driver does not do what recordings depend on.
    bool cuda_graphs = false;
  };

  // A point in a stream's work.
  class Event {
   public:
    virtual ~Event() = default;
  };

  // Opens the device `name`: one of ParseDeviceName(), or "auto" for the first
  // CUDA device if it can be used, otherwise the CPU. One line in the log says
  // which one "auto" has taken and why; a warning if there is a GPU that it
  // cannot use.
  //   InvalidArgument     as for CheckName() and CheckThreads().
  //   FailedPrecondition  cuBLAS is missing.
  static absl::StatusOr<std::unique_ptr<Device>> Open(absl::string_view name,
                                                      const Options& options);
  static absl::StatusOr<std::unique_ptr<Device>> Open(absl::string_view name) {
    return Open(name, Options());
  }

  // Returns OK if Open() would know and find the device `name`. Opens nothing.
  //   InvalidArgument  `name` is not the name of a device, or is a CUDA device
  //                    but this binary was built without CUDA, or the driver
  //                    or the device is missing. The message says which, and
  //                    leaves the name to the caller.
  static absl::Status CheckName(absl::string_view name);
  // Returns the names of all CUDA devices that CheckName() finds, in order.
  static std::vector<std::string> CudaNames();
  // Returns OK if Open() would accept this number of threads.
  //   InvalidArgument  it is not from 1 to 1024.
  static absl::Status CheckThreads(int threads);

  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  Kind kind() const { return kind_; }
  // The device's name for logs: "cpu (1 thread)", "cuda:0 (NVIDIA H100)".
  const std::string& name() const { return name_; }
  // Returns true on the CPU: host and device can both read and write arrays of
  // both kinds.
  virtual bool shares_host_memory() const { return kind_ == Kind::kCpu; }
  // Type of the elements that layers which know both types pass on to each
  // other on this device.
  virtual EdgeType edge_type() const { return EdgeType::kFloat32; }

  // Returns a new array in the device's memory, or in host memory.
  //   ResourceExhausted  out of memory: names the bytes and the device.
  template <typename T>
  absl::StatusOr<Array<T>> NewArray(size_t size) {
    return New<T>(size, /*on_host=*/false);
  }
  template <typename T>
  absl::StatusOr<Array<T>> NewHostArray(size_t size) {
    return New<T>(size, /*on_host=*/true);
  }

  // Enqueues a copy of `from.size()` elements between two arrays of NewArray()
  // or NewHostArray(). Errors of this and the following functions: Unavailable,
  // the device was lost.
  template <typename T>
  absl::Status Copy(Stream stream, absl::Span<const T> from, T* to) {
    return CopyBytes(stream, from.data(), to, from.size() * sizeof(T));
  }
  // Enqueues a copy of an array between layers to another of its type.
  absl::Status Copy(Stream stream, ConstElements from, int64_t size,
                    Elements to) {
    CHECK(from.type() == to.type());
    return CopyBytes(stream, from.data(), to.data(),
                     size * BytesOf(from.type()));
  }

  // Makes all work enqueued on `later` from now on wait for the work that is on
  // `earlier` now.
  virtual absl::Status Order(Stream earlier, Stream later) = 0;

  // Two functions for events. NewEvent() returns an event that marks no point
  // yet; Record() moves `event` to the present end of `stream`.
  virtual absl::StatusOr<std::unique_ptr<Event>> NewEvent() = 0;
  virtual absl::Status Record(Stream stream, Event& event) = 0;
  // Makes all work enqueued on `later` from now on wait for the point that
  // `event` marks now. Not part of a recording.
  virtual absl::Status Follow(Event& event, Stream later) = 0;
  // Blocks until the work before `event` is done. Returns at once if the event
  // was never recorded. The driver ends the wait with an error when the device
  // is lost.
  virtual absl::Status Wait(Event& event) = 0;

  // Blocks until all streams are empty.
  virtual absl::Status Synchronize() = 0;

  // The recorder of this device. Null if the device cannot record work or was
  // opened without a recorder.
  virtual Recorder* recorder() { return nullptr; }
  // Number of times that memory which enqueued work may name was freed. A
  // recording made before the latest change of this number must not be
  // replayed.
  uint64_t releases() const { return releases_; }

 protected:
  Device(Kind kind, std::string name) : kind_(kind), name_(std::move(name)) {}

  // The counter behind releases(), which code that frees memory other than an
  // Array increments.
  uint64_t releases_ = 0;

 private:
  template <typename T>
  friend class Array;

  template <typename T>
  absl::StatusOr<Array<T>> New(size_t size, bool on_host) {
    absl::StatusOr<void*> data = Allocate(size * sizeof(T), on_host);
    if (!data.ok()) return data.status();
    Array<T> array;
    array.data_ = {static_cast<T*>(*data), {this, on_host}};
    array.size_ = size;
    return array;
  }

  // Returns zeroed memory; `bytes` may be 0.
  virtual absl::StatusOr<void*> Allocate(size_t bytes, bool on_host) = 0;
  virtual void Free(void* data, bool on_host) = 0;
  virtual absl::Status CopyBytes(Stream stream, const void* from, void* to,
                                 size_t bytes) = 0;

  const Kind kind_;
  const std::string name_;
};

template <typename T>
void Array<T>::Release::operator()(T* data) const {
  ++device->releases_;
  device->Free(data, on_host);
}

}  // namespace parasol

#endif  // PARASOL_ML_DEVICE_DEVICE_H_
