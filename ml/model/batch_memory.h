#ifndef PARASOL_ML_MODEL_BATCH_MEMORY_H_
#define PARASOL_ML_MODEL_BATCH_MEMORY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/input/batch.h"
#include "ml/kernel/device.h"
#include "ml/kernel/matrix.h"
#include "ml/kernel/softmax_cross_entropy.h"

namespace parasol {

// What one pass of a batch through a model needs beside the variables: input,
// every layer's output, the gradients between the layers, the losses. Grows to
// the largest batch seen and stays there. On the CPU the input is read where
// the batch has it. Not thread-safe.
class BatchMemory {
 public:
  // `outputs`: of one example, for each layer. Borrows `device`.
  BatchMemory(Device& device, int64_t inputs, std::vector<int64_t> outputs);

  // Makes room for `batch` and brings it to the device: on the copy-in stream,
  // which the compute stream is to be ordered behind. `batch` must stay until
  // the pass is over.
  //   ResourceExhausted  the device is full.
  absl::Status Load(const Batch& batch);

  // Of the batch loaded last, on the device.
  MatrixView input() const { return input_; }
  const int32_t* labels() const { return labels_; }
  MutableMatrixView output(size_t layer) const;
  // The loss's gradient by output(layer): that of the layer below overwrites
  // that of the layer above.
  MutableMatrixView output_gradient(size_t layer) const;
  CrossEntropyOutputs losses() const;

  // Starts to bring losses() to the host once the compute stream gets here;
  // waits until they are there.
  absl::Status FetchLosses();
  struct Sums {
    double loss = 0;
  };
  absl::StatusOr<Sums> AwaitLosses();

  // The last layer's output on the host, as FetchLosses() and AwaitLosses()
  // do: to be called before them.
  absl::Status FetchOutputs();
  absl::Span<const float> outputs() const;

 private:
  absl::Status Grow(int64_t examples);
  absl::Status CopyIn(const Batch& batch);

  Device* device_;
  int64_t inputs_;
  std::vector<int64_t> outputs_;
  int64_t capacity_ = 0;  // examples
  int64_t examples_ = 0;
  MatrixView input_;
  const int32_t* labels_ = nullptr;

  std::vector<Array<float>> layer_outputs_;
  std::array<Array<float>, 2> output_gradients_;
  Array<float> losses_, host_losses_;
  Array<int32_t> correct_;
  Array<float> host_outputs_;
  std::unique_ptr<Device::Event> losses_fetched_;
  // Unused on the CPU.
  Array<float> device_features_, host_features_;
  Array<int32_t> device_labels_;
  Array<int32_t> host_labels_;
};

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_BATCH_MEMORY_H_
