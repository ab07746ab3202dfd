#ifndef PARASOL_LOOP_DATASET_H_
#define PARASOL_LOOP_DATASET_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "loop/core/stream.h"
#include "ml/tape/tensor.h"

namespace parasol::loop {

// Examples for a program's steps, as tf.data.Dataset: a description of a stream
// of elements, which iterators read. Cheap to copy; functions return another
// data set. An element is a Batch; an example has no axis of examples yet.
//
//   Dataset data = Dataset::FromTensors({images, labels})->Shuffle(60000, 7)
//       .Repeat().Batched(64);
//
// Streams depend on nothing but the description, so a program that goes on from
// a checkpoint reads on where it was.
class Dataset {
 public:
  // One element for each place along the first axis, which all tensors have
  // in the same size.
  //   InvalidArgument  there is no tensor, or one has no such axis.
  static absl::StatusOr<Dataset> FromTensors(std::vector<Tensor> tensors);
  // The elements that `make` returns for 0, 1, 2, …, until it returns none. Its
  // result must depend on the number alone; it may be called from any thread.
  static Dataset FromGenerator(
      std::function<absl::StatusOr<std::optional<Batch>>(int64_t number)> make);

  // What `open` opens.
  static Dataset FromStream(StreamOpener open) {
    return Dataset(std::move(open));
  }

  // Draws elements at random from the next `buffer` ones, in another order in
  // each repetition. Of FromTensors() alone, before all else: its result is the
  // data set of an error otherwise.
  Dataset Shuffle(int64_t buffer, uint64_t seed) const;
  // Begins again at the end, `count` times in all; without end if it is
  // negative.
  Dataset Repeat(int64_t count = -1) const;
  // Ends after `count` elements.
  Dataset Take(int64_t count) const;
  // Joins `size` examples to a batch: their tensors, one behind the other along
  // a new first axis. The last batch may be smaller; it is left out with
  // `drop_remainder`.
  Dataset Batched(int64_t size, bool drop_remainder = false) const;
  // Replaces each element by what `change` makes of it. It is called on the
  // thread that reads.
  Dataset Map(std::function<absl::StatusOr<Batch>(Batch)> change) const;

  // Reads the elements from the first one on.
  absl::StatusOr<std::unique_ptr<Stream>> Open() const;

 private:
  explicit Dataset(StreamOpener open) : open_(std::move(open)) {}
  explicit Dataset(std::shared_ptr<const TensorSlices> slices);

  StreamOpener open_;
  // The examples in memory, if that is all; null otherwise.
  std::shared_ptr<const TensorSlices> slices_;
};

}  // namespace parasol::loop

#endif  // PARASOL_LOOP_DATASET_H_
