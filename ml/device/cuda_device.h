#ifndef PARASOL_ML_DEVICE_CUDA_DEVICE_H_
#define PARASOL_ML_DEVICE_CUDA_DEVICE_H_

#include <array>
#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ml/device/cuda_blas.h"
#include "ml/device/cuda_dnn.h"
#include "ml/device/cuda_recorder.h"
#include "ml/device/device.h"
#include "ml/device/precision.h"
#include "ml/device/recorder.h"

// CUDA's own names of its stream and event types, declared here so that no
// caller needs CUDA's headers.
struct CUstream_st;
struct CUevent_st;

namespace parasol {

class CudaScratch;

// One NVIDIA GPU with a stream for kernels and one for the copies of each
// direction, so that all three run at the same time. Host arrays are pinned.
class CudaDevice : public Device {
 public:
  // Returns OK if this machine has GPU number `index`. Opens nothing.
  //   InvalidArgument  the driver or the device is missing.
  static absl::Status CheckIndex(int index);
  // Returns true if this machine has a GPU, or at least its driver, whether or
  // not it can be used.
  static bool IsPresent();
  // Opens GPU number `index`, for which CheckIndex() is OK.
  //   FailedPrecondition  cuBLAS is missing.
  static absl::StatusOr<std::unique_ptr<Device>> Open(int index,
                                                      const Options& options);
  ~CudaDevice() override;

  // Has the calling thread's next call of any device select it, whatever a
  // library has selected meanwhile.
  static void SelectAnew();

  // Returns the device's number: 1 of cuda:1.
  int index() const { return index_; }

  // Returns the stream on which kernels are launched, and makes this device the
  // calling thread's current one.
  absl::StatusOr<CUstream_st*> ComputeStream();
  // Returns another stream, and makes this device the current one, too.
  absl::StatusOr<CUstream_st*> StreamOf(Stream stream);
  // Returns CUDA's own of an event of NewEvent().
  static CUevent_st* EventOf(Event& event);
  // Returns device memory for `elements` numbers that one kernel on the compute
  // stream writes and the next ones read, until the next call.
  //   ResourceExhausted  the device is full.
  absl::StatusOr<float*> Scratch(size_t elements);
  // Matrix products. Their work goes to the compute stream.
  CudaBlas& blas() { return *blas_; }
  // Returns cuDNN, whose work goes to the compute stream too. The first call
  // opens it. The first failure of a process has a line in the log.
  //   FailedPrecondition  cuDNN is not on this machine.
  absl::StatusOr<CudaDnn*> dnn();
  Precision precision() const { return precision_; }
  EdgeType edge_type() const override {
    return precision_ == Precision::kBfloat16 ? EdgeType::kBfloat16
                                              : EdgeType::kFloat32;
  }

  absl::Status Order(Stream earlier, Stream later) override;
  absl::StatusOr<std::unique_ptr<Event>> NewEvent() override;
  absl::Status Record(Stream stream, Event& event) override;
  absl::Status Follow(Event& event, Stream later) override;
  absl::Status Wait(Event& event) override;
  absl::Status Synchronize() override;
  Recorder* recorder() override { return recorder_.get(); }

 private:
  CudaDevice(int index, std::string name, Precision precision);

  absl::Status Start(const Options& options);
  // Makes a recorder, unless recordings cannot be relied on here.
  void StartRecorder();
  // Makes this device the calling thread's, unless it is: CUDA keeps a current
  // device per thread.
  absl::Status Select();
  CUstream_st* Get(Stream stream) const {
    return streams_[static_cast<size_t>(stream)];
  }

  absl::StatusOr<void*> Allocate(size_t bytes, bool on_host) override;
  absl::Status Zero(void* data, size_t bytes);
  void Free(void* data, bool on_host) override;
  absl::Status CopyBytes(Stream stream, const void* from, void* to,
                         size_t bytes) override;

  const int index_;
  const Precision precision_;
  std::array<CUstream_st*, 3> streams_ = {};
  CUevent_st* order_ = nullptr;
  std::unique_ptr<CudaScratch> scratch_;
  std::unique_ptr<CudaBlas> blas_;
  std::unique_ptr<CudaDnn> dnn_;
  std::unique_ptr<CudaRecorder> recorder_;
};

}  // namespace parasol

#endif  // PARASOL_ML_DEVICE_CUDA_DEVICE_H_
