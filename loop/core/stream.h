#ifndef PARASOL_LOOP_CORE_STREAM_H_
#define PARASOL_LOOP_CORE_STREAM_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ml/tape/tensor.h"

namespace parasol::loop {

// The parts of an example, or of a batch of examples: inputs, labels, …
struct Batch {
  std::vector<Tensor> tensors;

  const Tensor& operator[](size_t part) const { return tensors[part]; }
  // Number of examples of a batch: the size of the first axis.
  int64_t size() const {
    return tensors.empty() || tensors[0].rank() == 0 ? 0
                                                     : tensors[0].shape()[0];
  }
};

// The elements of a data set, one after the other. Used by one thread.
class Stream {
 public:
  virtual ~Stream() = default;

  // Returns the next element; nullopt at the end.
  virtual absl::StatusOr<std::optional<Batch>> Next() = 0;
  // Returns the next elements, `count` at most, as one batch; nullopt at the
  // end.
  //   InvalidArgument  elements differ in their shapes.
  virtual absl::StatusOr<std::optional<Batch>> NextRows(int64_t count);
  // Passes over `count` elements, or to the end.
  virtual absl::Status Skip(int64_t count);
};

// Examples in memory: example i is tensors[k][i].
struct TensorSlices {
  std::vector<Tensor> tensors;
  int64_t examples = 0;
  int64_t shuffle_buffer = 0;
  uint64_t seed = 0;
  int64_t epochs = 1;  // negative: without end
};

// Opens a stream anew; in which epoch of a repetition, from 0 on, may change
// the order of its elements.
using StreamOpener =
    std::function<absl::StatusOr<std::unique_ptr<Stream>>(int64_t epoch)>;

std::unique_ptr<Stream> OpenSlices(std::shared_ptr<const TensorSlices> slices);
std::unique_ptr<Stream> OpenGenerated(
    std::function<absl::StatusOr<std::optional<Batch>>(int64_t)> make);
std::unique_ptr<Stream> OpenRepeated(StreamOpener input, int64_t count);
std::unique_ptr<Stream> OpenTaken(std::unique_ptr<Stream> input, int64_t count);
std::unique_ptr<Stream> OpenBatched(std::unique_ptr<Stream> input, int64_t size,
                                    bool drop_remainder);
std::unique_ptr<Stream> OpenMapped(
    std::unique_ptr<Stream> input,
    std::function<absl::StatusOr<Batch>(Batch)> change);

// Returns examples [first, first + count) of a batch, as far as there are such:
// a batch without examples otherwise.
absl::StatusOr<Batch> SliceBatch(const Batch& batch, int64_t first,
                                 int64_t count);

}  // namespace parasol::loop

#endif  // PARASOL_LOOP_CORE_STREAM_H_
