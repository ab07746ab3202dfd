#include "loop/dataset.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace parasol::loop {

Dataset::Dataset(std::shared_ptr<const TensorSlices> slices)
    : open_([slices](int64_t epoch) -> absl::StatusOr<std::unique_ptr<Stream>> {
        return OpenSlices(slices);
      }),
      slices_(slices) {}

absl::StatusOr<Dataset> Dataset::FromTensors(std::vector<Tensor> tensors) {
  if (tensors.empty()) {
    return absl::InvalidArgumentError("a data set of no tensors");
  }
  TensorSlices slices;
  for (const Tensor& tensor : tensors) {
    RETURN_IF_ERROR(tensor.status()) << "a data set's tensor";
    if (tensor.rank() == 0) {
      return absl::InvalidArgumentError(
          "a data set's tensor is a scalar: examples lie along the first axis");
    }
    if (tensor.shape()[0] != tensors[0].shape()[0]) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tensors of a data set have the shapes ",
          tensors[0].shape().ToString(), " and ", tensor.shape().ToString(),
          ": the first axis is the examples'"));
    }
  }
  slices.examples = tensors[0].shape()[0];
  slices.tensors = std::move(tensors);
  return Dataset(std::make_shared<const TensorSlices>(std::move(slices)));
}

Dataset Dataset::FromGenerator(
    std::function<absl::StatusOr<std::optional<Batch>>(int64_t number)> make) {
  return Dataset(StreamOpener([make = std::move(make)](int64_t epoch)
                                  -> absl::StatusOr<std::unique_ptr<Stream>> {
    return OpenGenerated(make);
  }));
}

Dataset Dataset::Shuffle(int64_t buffer, uint64_t seed) const {
  if (slices_ == nullptr || slices_->epochs != 1) {
    return Dataset(StreamOpener([](int64_t epoch)
                                    -> absl::StatusOr<std::unique_ptr<Stream>> {
      return absl::InvalidArgumentError(
          "Shuffle() of what is not FromTensors(): shuffle the examples before "
          "they are repeated, batched or changed");
    }));
  }
  TensorSlices shuffled = *slices_;
  shuffled.shuffle_buffer = buffer;
  shuffled.seed = seed;
  return Dataset(std::make_shared<const TensorSlices>(std::move(shuffled)));
}

Dataset Dataset::Repeat(int64_t count) const {
  if (slices_ != nullptr && slices_->epochs == 1) {
    TensorSlices repeated = *slices_;
    repeated.epochs = count;
    return Dataset(std::make_shared<const TensorSlices>(std::move(repeated)));
  }
  return Dataset(StreamOpener([open = open_, count](int64_t epoch)
                                  -> absl::StatusOr<std::unique_ptr<Stream>> {
    return OpenRepeated(open, count);
  }));
}

Dataset Dataset::Take(int64_t count) const {
  return Dataset(StreamOpener([open = open_, count](int64_t epoch)
                                  -> absl::StatusOr<std::unique_ptr<Stream>> {
    ASSIGN_OR_RETURN(std::unique_ptr<Stream> input, open(epoch));
    return OpenTaken(std::move(input), count);
  }));
}

Dataset Dataset::Batched(int64_t size, bool drop_remainder) const {
  return Dataset(StreamOpener(
      [open = open_, size, drop_remainder](
          int64_t epoch) -> absl::StatusOr<std::unique_ptr<Stream>> {
        if (size < 1) {
          return absl::InvalidArgumentError(
              absl::StrCat("batches of ", size, " examples: give 1 or more"));
        }
        ASSIGN_OR_RETURN(std::unique_ptr<Stream> input, open(epoch));
        return OpenBatched(std::move(input), size, drop_remainder);
      }));
}

Dataset Dataset::Map(std::function<absl::StatusOr<Batch>(Batch)> change) const {
  return Dataset(StreamOpener(
      [open = open_, change = std::move(change)](
          int64_t epoch) -> absl::StatusOr<std::unique_ptr<Stream>> {
        ASSIGN_OR_RETURN(std::unique_ptr<Stream> input, open(epoch));
        return OpenMapped(std::move(input), change);
      }));
}

absl::StatusOr<std::unique_ptr<Stream>> Dataset::Open() const {
  return open_(0);
}

}  // namespace parasol::loop
