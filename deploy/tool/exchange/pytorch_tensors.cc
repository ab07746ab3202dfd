#include "deploy/tool/exchange/pytorch_tensors.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

constexpr absl::string_view kKernel = "kernel";

// PyTorch's names of what a layer's variables are here.
constexpr std::pair<absl::string_view, absl::string_view> kLeaves[] = {
    {kKernel, "weight"},
    {"bias", "bias"},
    {"gamma", "weight"},
    {"beta", "bias"},
    {"moving_mean", "running_mean"},
    {"moving_variance", "running_var"}};

// The axes of PyTorch's kernel in the order in which they are here; empty if
// there is no kernel with so many.
std::vector<size_t> KernelAxes(size_t rank) {
  if (rank == 2) return {1, 0};
  if (rank == 4) return {2, 3, 1, 0};
  return {};
}

bool IsKernel(const std::string& variable) {
  return variable.substr(variable.rfind('/') + 1) == kKernel;
}

// The elements of `from`, of `shape`, with the axes in the order `axes`.
std::vector<char> Permuted(const std::vector<char>& from,
                           const std::vector<int64_t>& shape,
                           const std::vector<size_t>& axes, size_t element) {
  const size_t rank = shape.size();
  std::vector<size_t> strides(rank, element);  // of `from`, in bytes
  for (size_t i = rank - 1; i-- > 0;) {
    strides[i] = strides[i + 1] * static_cast<size_t>(shape[i + 1]);
  }
  std::vector<char> to(from.size());
  std::vector<int64_t> index(rank, 0);  // in `to`
  size_t source = 0;
  for (size_t place = 0; place < to.size(); place += element) {
    std::memcpy(&to[place], &from[source], element);
    for (size_t axis = rank; axis-- > 0;) {
      source += strides[axes[axis]];
      if (++index[axis] < shape[axes[axis]]) break;
      source -= strides[axes[axis]] * static_cast<size_t>(index[axis]);
      index[axis] = 0;
    }
  }
  return to;
}

class TranslatedTensors : public TensorReader {
 public:
  explicit TranslatedTensors(std::unique_ptr<TensorReader> reader)
      : reader_(std::move(reader)),
        tensors_(reader_->tensors()),
        axes_(tensors_.size()) {}

  // Renames PyTorch's tensors of these variables; returns true if one of them
  // is a dense layer's kernel.
  bool Rename(const CheckpointContents& contents) {
    std::map<std::string, size_t> by_name;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      by_name.emplace(tensors_[i].name, i);
    }
    bool has_dense_kernel = false;
    for (const durable::CheckpointVariable& variable : contents.variables) {
      const auto found = by_name.find(PyTorchName(variable.name()));
      if (by_name.contains(variable.name()) || found == by_name.end()) continue;
      TensorInfo& info = tensors_[found->second];
      info.name = variable.name();
      if (!IsKernel(variable.name())) continue;
      has_dense_kernel |= info.shape.size() == 2;
      axes_[found->second] = KernelAxes(info.shape.size());
      const std::vector<int64_t> there = info.shape;
      for (size_t axis = 0; axis < axes_[found->second].size(); ++axis) {
        info.shape[axis] = there[axes_[found->second][axis]];
      }
    }
    return has_dense_kernel;
  }

  const std::vector<TensorInfo>& tensors() const override { return tensors_; }

  absl::Status Read(size_t tensor, uint64_t first,
                    absl::Span<char> out) override {
    if (axes_[tensor].empty()) return reader_->Read(tensor, first, out);
    if (permuted_tensor_ != tensor) {
      RETURN_IF_ERROR(Permute(tensor));
    }
    std::copy_n(permuted_.begin() + static_cast<int64_t>(first), out.size(),
                out.begin());
    return absl::OkStatus();
  }

 private:
  // Reads the tensor whole, and keeps it in the order of the job's axes.
  absl::Status Permute(size_t tensor) {
    const TensorInfo& there = reader_->tensors()[tensor];
    ASSIGN_OR_RETURN(const uint64_t size, CountBytes(there));
    std::vector<char> bytes(size);
    RETURN_IF_ERROR(reader_->Read(tensor, 0, absl::MakeSpan(bytes)));
    permuted_ =
        Permuted(bytes, there.shape, axes_[tensor], BytesOf(there.type));
    permuted_tensor_ = tensor;
    return absl::OkStatus();
  }

  const std::unique_ptr<TensorReader> reader_;
  std::vector<TensorInfo> tensors_;
  // The source's axes in the order of the job's; empty: the same order.
  std::vector<std::vector<size_t>> axes_;
  std::optional<size_t> permuted_tensor_;
  std::vector<char> permuted_;
};

// Images of one channel have one order.
template <typename Shape>
bool IsShapeOfImages(const Shape& shape) {
  return shape.size() == 3 && shape[2] > 1 && shape[0] * shape[1] > 1;
}

bool FlattensImages(const job::Model& model) {
  bool has_images = IsShapeOfImages(model.input_shape());
  for (const job::ModelInput& input : model.input()) {
    has_images |= IsShapeOfImages(input.dense().shape());
  }
  for (const job::Layer& layer : model.layer()) {
    has_images |= layer.has_conv2d();
    if (has_images && layer.has_flatten()) return true;
  }
  return false;
}

}  // namespace

std::string PyTorchName(const std::string& variable) {
  const size_t slash = variable.rfind('/');
  if (slash == std::string::npos) return "";
  const absl::string_view leaf = absl::string_view(variable).substr(slash + 1);
  for (const auto& [here, there] : kLeaves) {
    if (here != leaf) continue;
    return absl::StrCat(
        absl::StrReplaceAll(variable.substr(0, slash), {{"/", "."}}), ".",
        there);
  }
  return "";
}

absl::StatusOr<std::unique_ptr<TensorReader>> TranslatePyTorch(
    std::unique_ptr<TensorReader> reader, const CheckpointContents& contents,
    const job::Model& model) {
  auto translated = std::make_unique<TranslatedTensors>(std::move(reader));
  if (translated->Rename(contents) && FlattensImages(model)) {
    return absl::InvalidArgumentError(
        "the job flattens images as [height, width, channels], PyTorch as "
        "[channels, height, width]: put the rows of the dense kernel "
        "behind it in the job's order, and name the tensors as the job does");
  }
  return translated;
}

}  // namespace parasol
