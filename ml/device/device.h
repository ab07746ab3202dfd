#ifndef PARASOL_ML_DEVICE_DEVICE_H_
#define PARASOL_ML_DEVICE_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ml/device/precision.h"

namespace parasol {

class Device;
class Recorder;

// An array in the memory of a device, or in host memory that the device copies
// from and to at full speed. Starts zeroed, at a multiple of 64 bytes. Movable;
// must not outlive its device.
template <typename T>
class Array {
  static_assert(std::is_trivial_v<T>);

 public:
  Array() = default;

  // On a CUDA device's memory: an address, not to be followed on the host.
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

// Where a model computes. Work is enqueued on streams, each in order, the
// streams beside each other; on the CPU every call has finished when it
// returns. Not thread-safe; kernels and copies of one device come from one
// thread at a time. Arrays and events go before their device.
class Device {
 public:
  enum class Kind { kCpu, kCuda };
  enum class Stream { kCompute, kCopyIn, kCopyOut };

  struct Options {
    // Of the CPU, per kernel. One, because a machine usually runs as many
    // workers as it has cores, and OpenMP's threads spin while they wait: two
    // pools on the same cores are slower than one thread. A worker that has a
    // machine to itself should ask for its cores.
    int threads = 1;
    Precision precision = Precision::kFloat32;
    // Whether a CUDA device has a recorder().
    bool cuda_graphs = false;
  };

  // A point in a stream's work.
  class Event {
   public:
    virtual ~Event() = default;
  };

  // "cpu", "cuda:0", or "auto": the first CUDA device that can be used,
  // otherwise the CPU.
  //   InvalidArgument     no such name.
  //   FailedPrecondition  a CUDA device was asked for, and this binary was
  //                       built without CUDA, or the device, the driver or
  //                       cuBLAS is not there: says which.
  static absl::StatusOr<std::unique_ptr<Device>> Open(absl::string_view name,
                                                      const Options& options);
  static absl::StatusOr<std::unique_ptr<Device>> Open(absl::string_view name) {
    return Open(name, Options());
  }

  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  Kind kind() const { return kind_; }
  // For logs: "cpu (1 thread)", "cuda:0 (NVIDIA H100)".
  const std::string& name() const { return name_; }
  // The CPU: arrays of both kinds can be read and written by either.
  virtual bool shares_host_memory() const { return kind_ == Kind::kCpu; }

  // ResourceExhausted: out of memory; names the bytes and the device.
  template <typename T>
  absl::StatusOr<Array<T>> NewArray(size_t size) {
    return New<T>(size, /*on_host=*/false);
  }
  template <typename T>
  absl::StatusOr<Array<T>> NewHostArray(size_t size) {
    return New<T>(size, /*on_host=*/true);
  }

  // Enqueues a copy of `from.size()` elements between two arrays of NewArray()
  // or NewHostArray(). Errors of this and what follows: Unavailable, the device
  // was lost.
  template <typename T>
  absl::Status Copy(Stream stream, absl::Span<const T> from, T* to) {
    return CopyBytes(stream, from.data(), to, from.size() * sizeof(T));
  }

  // Lets what is enqueued on `later` from now on wait for everything that is
  // on `earlier` now.
  virtual absl::Status Order(Stream earlier, Stream later) = 0;

  // Moves `event` to the present end of `stream`.
  virtual absl::StatusOr<std::unique_ptr<Event>> NewEvent() = 0;
  virtual absl::Status Record(Stream stream, Event& event) = 0;
  // Blocks until the work before `event` is done, which is at once when it was
  // never recorded. The driver ends the wait with an error when the device is
  // lost.
  virtual absl::Status Wait(Event& event) = 0;

  // Blocks until all streams are empty.
  virtual absl::Status Synchronize() = 0;

  // Null: this device cannot record work, or was not to.
  virtual Recorder* recorder() { return nullptr; }
  // How often memory was given back that work may name. What was recorded
  // before the last time must not be replayed.
  uint64_t releases() const { return releases_; }

 protected:
  Device(Kind kind, std::string name) : kind_(kind), name_(std::move(name)) {}

  // For memory that is no Array.
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

  // Zeroed; `bytes` may be 0.
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
