#include "loop/core/stream.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "loop/core/blank_tensor.h"
#include "ml/input/example_order.h"
#include "ml/tape/operations.h"

namespace parasol::loop {
namespace {

using MaybeBatch = absl::StatusOr<std::optional<Batch>>;

TensorShape WithRows(const TensorShape& example, int64_t rows) {
  TensorShape shape = {rows};
  for (int axis = 0; axis < example.rank(); ++axis) {
    shape.Append(example[axis]);
  }
  return shape;
}

TensorShape ExampleShape(const TensorShape& rows) {
  TensorShape shape;
  for (int axis = 1; axis < rows.rank(); ++axis) shape.Append(rows[axis]);
  return shape;
}

// Returns rows of `tensor` as a tensor of `shape`.
template <typename T>
void CopyRows(const T* from, int64_t width, absl::Span<const int64_t> rows,
              T* to) {
  for (const int64_t row : rows) {
    std::copy_n(from + row * width, width, to);
    to += width;
  }
}

Tensor Rows(const Tensor& tensor, absl::Span<const int64_t> rows,
            const TensorShape& shape) {
  const int64_t width = ExampleShape(tensor.shape()).size();
  if (tensor.dtype() == DType::kInt64) {
    std::vector<int64_t> elements(rows.size() * width);
    CopyRows(tensor.ints().data(), width, rows, elements.data());
    return Tensor::Ints(elements, shape);
  }
  float* elements = nullptr;
  Tensor result = BlankTensor(shape, &elements);
  if (result.status().ok()) {
    CopyRows(tensor.values().data(), width, rows, elements);
  }
  return result;
}

class SlicesStream : public Stream {
 public:
  explicit SlicesStream(std::shared_ptr<const TensorSlices> slices)
      : slices_(std::move(slices)),
        order_({.total = slices_->examples,
                .shuffle_buffer = slices_->shuffle_buffer,
                .seed = slices_->seed}) {
    order_.StartEpoch(0);
  }

  MaybeBatch Next() override {
    const std::optional<int64_t> row = NextRow();
    if (!row) return std::nullopt;
    return Make({*row}, /*is_example=*/true);
  }

  MaybeBatch NextRows(int64_t count) override {
    std::vector<int64_t> rows;
    while (static_cast<int64_t>(rows.size()) < count) {
      const std::optional<int64_t> row = NextRow();
      if (!row) break;
      rows.push_back(*row);
    }
    if (rows.empty()) return std::nullopt;
    return Make(rows, /*is_example=*/false);
  }

  absl::Status Skip(int64_t count) override {
    while (count > 0) {
      const int64_t left = slices_->examples - in_epoch_;
      const int64_t now = std::min(count, left);
      if (now < left || slices_->examples == 0) {
        order_.Skip(now);
        in_epoch_ += now;
        return absl::OkStatus();
      }
      count -= now;
      if (!StartNextEpoch()) return absl::OkStatus();
    }
    return absl::OkStatus();
  }

 private:
  std::optional<int64_t> NextRow() {
    if (slices_->examples == 0) return std::nullopt;
    std::optional<int64_t> row = order_.Next();
    if (!row && StartNextEpoch()) row = order_.Next();
    if (row) ++in_epoch_;
    return row;
  }

  // Returns false after the last one, which stays at its end.
  bool StartNextEpoch() {
    if (slices_->epochs >= 0 && epoch_ + 1 >= slices_->epochs) {
      order_.Skip(slices_->examples);
      in_epoch_ = slices_->examples;
      return false;
    }
    order_.StartEpoch(++epoch_);
    in_epoch_ = 0;
    return true;
  }

  MaybeBatch Make(absl::Span<const int64_t> rows, bool is_example) const {
    Batch batch;
    for (const Tensor& tensor : slices_->tensors) {
      const TensorShape example = ExampleShape(tensor.shape());
      batch.tensors.push_back(Rows(
          tensor, rows, is_example ? example : WithRows(example, rows.size())));
      RETURN_IF_ERROR(batch.tensors.back().status());
    }
    return batch;
  }

  const std::shared_ptr<const TensorSlices> slices_;
  ExampleOrder order_;
  int64_t epoch_ = 0;
  int64_t in_epoch_ = 0;
};

class GeneratedStream : public Stream {
 public:
  explicit GeneratedStream(std::function<MaybeBatch(int64_t)> make)
      : make_(std::move(make)) {}

  MaybeBatch Next() override {
    if (is_over_) return std::nullopt;
    ASSIGN_OR_RETURN(std::optional<Batch> element, make_(next_),
                     _ << "element " << next_ << " of a generator");
    if (!element) {
      is_over_ = true;
      return std::nullopt;
    }
    for (const Tensor& tensor : element->tensors) {
      RETURN_IF_ERROR(tensor.status())
          << "element " << next_ << " of a generator";
    }
    ++next_;
    return element;
  }

  // The last element that is passed over says whether the end is among them.
  absl::Status Skip(int64_t count) override {
    if (count <= 0 || is_over_) return absl::OkStatus();
    next_ += count - 1;
    return Next().status();
  }

 private:
  const std::function<MaybeBatch(int64_t)> make_;
  int64_t next_ = 0;
  bool is_over_ = false;
};

class RepeatedStream : public Stream {
 public:
  RepeatedStream(StreamOpener open, int64_t count)
      : open_(std::move(open)), left_(count) {}

  MaybeBatch Next() override {
    while (true) {
      if (stream_ == nullptr) {
        if (left_ == 0) return std::nullopt;
        if (left_ > 0) --left_;
        ASSIGN_OR_RETURN(stream_, open_(epoch_++));
        is_new_ = true;
      }
      ASSIGN_OR_RETURN(std::optional<Batch> element, stream_->Next());
      if (element) {
        is_new_ = false;
        return element;
      }
      // Nothing that is repeated without end stays nothing.
      if (is_new_) return std::nullopt;
      stream_ = nullptr;
    }
  }

 private:
  const StreamOpener open_;
  int64_t left_;  // repetitions; negative: without end
  int64_t epoch_ = 0;
  std::unique_ptr<Stream> stream_;
  bool is_new_ = false;
};

class TakenStream : public Stream {
 public:
  TakenStream(std::unique_ptr<Stream> input, int64_t count)
      : input_(std::move(input)), left_(count) {}

  MaybeBatch Next() override {
    if (left_ <= 0) return std::nullopt;
    --left_;
    return input_->Next();
  }
  absl::Status Skip(int64_t count) override {
    count = std::min(count, left_);
    left_ -= count;
    return input_->Skip(count);
  }

 private:
  const std::unique_ptr<Stream> input_;
  int64_t left_;
};

class BatchedStream : public Stream {
 public:
  BatchedStream(std::unique_ptr<Stream> input, int64_t size,
                bool drop_remainder)
      : input_(std::move(input)), size_(size), drops_(drop_remainder) {}

  MaybeBatch Next() override {
    ASSIGN_OR_RETURN(std::optional<Batch> batch, input_->NextRows(size_));
    if (!batch || (drops_ && batch->size() < size_)) return std::nullopt;
    return batch;
  }
  absl::Status Skip(int64_t count) override {
    if (count > std::numeric_limits<int64_t>::max() / size_) {
      return absl::InvalidArgumentError(
          absl::StrCat("passing over ", count, " batches"));
    }
    return input_->Skip(count * size_);
  }

 private:
  const std::unique_ptr<Stream> input_;
  const int64_t size_;
  const bool drops_;
};

class MappedStream : public Stream {
 public:
  MappedStream(std::unique_ptr<Stream> input,
               std::function<absl::StatusOr<Batch>(Batch)> change)
      : input_(std::move(input)), change_(std::move(change)) {}

  MaybeBatch Next() override {
    ASSIGN_OR_RETURN(std::optional<Batch> element, input_->Next());
    if (!element) return std::nullopt;
    ASSIGN_OR_RETURN(Batch changed, change_(*std::move(element)));
    for (const Tensor& tensor : changed.tensors) {
      RETURN_IF_ERROR(tensor.status()) << "Map()";
    }
    return changed;
  }
  absl::Status Skip(int64_t count) override { return input_->Skip(count); }

 private:
  const std::unique_ptr<Stream> input_;
  const std::function<absl::StatusOr<Batch>(Batch)> change_;
};

// Joins a tensor of each element along a new first axis.
absl::StatusOr<Tensor> Stack(const std::vector<Batch>& elements, size_t part) {
  const Tensor& first = elements[0][part];
  std::vector<Tensor> rows;
  for (const Batch& element : elements) {
    const Tensor& tensor = element[part];
    if (tensor.shape() != first.shape() || tensor.dtype() != first.dtype()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "examples of a batch have the shapes ", first.shape().ToString(),
          " and ", tensor.shape().ToString(), " in part ", part));
    }
    rows.push_back(Reshape(tensor, WithRows(tensor.shape(), 1)));
  }
  Tensor joined = Concat(rows, 0);
  RETURN_IF_ERROR(joined.status());
  return joined;
}

}  // namespace

absl::StatusOr<std::optional<Batch>> Stream::NextRows(int64_t count) {
  std::vector<Batch> elements;
  while (static_cast<int64_t>(elements.size()) < count) {
    ASSIGN_OR_RETURN(std::optional<Batch> element, Next());
    if (!element) break;
    if (!elements.empty() &&
        element->tensors.size() != elements[0].tensors.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("examples of a batch have ", elements[0].tensors.size(),
                       " and ", element->tensors.size(), " parts"));
    }
    elements.push_back(*std::move(element));
  }
  if (elements.empty()) return std::nullopt;
  Batch batch;
  for (size_t part = 0; part < elements[0].tensors.size(); ++part) {
    ASSIGN_OR_RETURN(batch.tensors.emplace_back(), Stack(elements, part));
  }
  return batch;
}

absl::Status Stream::Skip(int64_t count) {
  for (; count > 0; --count) {
    ASSIGN_OR_RETURN(const std::optional<Batch> element, Next());
    if (!element) break;
  }
  return absl::OkStatus();
}

std::unique_ptr<Stream> OpenSlices(std::shared_ptr<const TensorSlices> slices) {
  return std::make_unique<SlicesStream>(std::move(slices));
}

std::unique_ptr<Stream> OpenGenerated(
    std::function<absl::StatusOr<std::optional<Batch>>(int64_t)> make) {
  return std::make_unique<GeneratedStream>(std::move(make));
}

std::unique_ptr<Stream> OpenRepeated(StreamOpener input, int64_t count) {
  return std::make_unique<RepeatedStream>(std::move(input), count);
}

std::unique_ptr<Stream> OpenTaken(std::unique_ptr<Stream> input,
                                  int64_t count) {
  return std::make_unique<TakenStream>(std::move(input), count);
}

std::unique_ptr<Stream> OpenBatched(std::unique_ptr<Stream> input, int64_t size,
                                    bool drop_remainder) {
  return std::make_unique<BatchedStream>(std::move(input), size,
                                         drop_remainder);
}

std::unique_ptr<Stream> OpenMapped(
    std::unique_ptr<Stream> input,
    std::function<absl::StatusOr<Batch>(Batch)> change) {
  return std::make_unique<MappedStream>(std::move(input), std::move(change));
}

absl::StatusOr<Batch> SliceBatch(const Batch& batch, int64_t first,
                                 int64_t count) {
  const int64_t size = batch.size();
  first = std::min(first, size);
  count = std::min(count, size - first);
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < count; ++i) rows.push_back(first + i);
  Batch piece;
  for (const Tensor& tensor : batch.tensors) {
    if (tensor.rank() == 0 || tensor.shape()[0] != size) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a batch of ", size, " examples has a part of the shape ",
          tensor.shape().ToString(),
          ": batches are divided along their first axis"));
    }
    piece.tensors.push_back(
        Rows(tensor, rows, WithRows(ExampleShape(tensor.shape()), count)));
    RETURN_IF_ERROR(piece.tensors.back().status());
  }
  return piece;
}

}  // namespace parasol::loop
