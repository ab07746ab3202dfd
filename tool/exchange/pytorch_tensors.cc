#include "tool/exchange/pytorch_tensors.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "tool/exchange/moved_elements.h"

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

class TranslatedTensors : public TensorReader {
 public:
  explicit TranslatedTensors(std::unique_ptr<TensorReader> reader)
      : reader_(std::move(reader)),
        tensors_(reader_->tensors()),
        axes_(tensors_.size()),
        rows_(tensors_.size()) {}

  // Renames PyTorch's tensors of these variables, of which some have their rows
  // in another order there.
  //   InvalidArgument  the order of one of them is not known.
  absl::Status Rename(const CheckpointContents& contents,
                      const std::map<std::string, RowOrder>& orders) {
    std::map<std::string, size_t> by_name;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      by_name.emplace(tensors_[i].name, i);
    }
    for (const durable::CheckpointVariable& variable : contents.variables) {
      const auto found = by_name.find(PyTorchName(variable.name()));
      if (by_name.contains(variable.name()) || found == by_name.end()) continue;
      TensorInfo& info = tensors_[found->second];
      info.name = variable.name();
      const auto order = orders.find(variable.name());
      if (order != orders.end()) {
        if (order->second.empty()) return UnknownRowOrder(variable.name());
        rows_[found->second] = order->second;
      }
      axes_[found->second] =
          PyTorchKernelAxes(variable.name(), info.shape.size());
      const std::vector<int64_t> there = info.shape;
      for (size_t axis = 0; axis < axes_[found->second].size(); ++axis) {
        info.shape[axis] = there[axes_[found->second][axis]];
      }
    }
    return absl::OkStatus();
  }

  const std::vector<TensorInfo>& tensors() const override { return tensors_; }

  absl::Status Read(size_t tensor, uint64_t first,
                    absl::Span<char> out) override {
    if (axes_[tensor].empty() && rows_[tensor].empty()) {
      return reader_->Read(tensor, first, out);
    }
    if (permuted_tensor_ != tensor) {
      RETURN_IF_ERROR(Permute(tensor));
    }
    std::copy_n(permuted_.begin() + static_cast<int64_t>(first), out.size(),
                out.begin());
    return absl::OkStatus();
  }

 private:
  // Reads the tensor whole, and keeps it in the order of the job's axes and
  // rows.
  absl::Status Permute(size_t tensor) {
    const TensorInfo& there = reader_->tensors()[tensor];
    ASSIGN_OR_RETURN(const uint64_t size, CountBytes(there));
    std::vector<char> bytes(size);
    RETURN_IF_ERROR(reader_->Read(tensor, 0, absl::MakeSpan(bytes)));
    permuted_ =
        axes_[tensor].empty()
            ? std::move(bytes)
            : Permuted(bytes, there.shape, axes_[tensor], BytesOf(there.type));
    // Another number of rows is a fault of the shape, which is named later.
    const RowOrder& rows = rows_[tensor];
    if (!rows.empty() &&
        tensors_[tensor].shape[0] == static_cast<int64_t>(rows.size())) {
      permuted_ = Reordered(permuted_, rows);
    }
    permuted_tensor_ = tensor;
    return absl::OkStatus();
  }

  const std::unique_ptr<TensorReader> reader_;
  std::vector<TensorInfo> tensors_;
  // The source's axes in the order of the job's; empty: the same order.
  std::vector<std::vector<size_t>> axes_;
  // The source's rows in the order of the job's; empty: the same order.
  std::vector<RowOrder> rows_;
  std::optional<size_t> permuted_tensor_;
  std::vector<char> permuted_;
};

}  // namespace

namespace {

// A kernel of attention has an axis for the heads, and no counterpart.
bool IsOfAttention(absl::string_view variable) {
  for (const absl::string_view part :
       {"query/kernel", "key/kernel", "value/kernel",
        "attention_output/kernel"}) {
    if (absl::EndsWith(variable, absl::StrCat("/", part))) return true;
  }
  return false;
}

}  // namespace

std::vector<size_t> PyTorchKernelAxes(const std::string& variable,
                                      size_t rank) {
  if (variable.substr(variable.rfind('/') + 1) != kKernel) return {};
  if (rank == 2) return {1, 0};
  if (rank == 3 && !IsOfAttention(variable)) return {2, 1, 0};
  if (rank == 4) return {2, 3, 1, 0};
  return {};
}

absl::Status UnknownRowOrder(const std::string& variable) {
  return absl::InvalidArgumentError(absl::StrCat(
      variable,
      ": stands behind a flattened image, which is [height, width, channels] "
      "here and [channels, height, width] in PyTorch, and behind a layer whose "
      "order there can't be told: put its rows in the job's order, and name "
      "the tensors as the job does"));
}

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
    const std::map<std::string, RowOrder>& orders) {
  auto translated = std::make_unique<TranslatedTensors>(std::move(reader));
  RETURN_IF_ERROR(translated->Rename(contents, orders));
  return translated;
}

}  // namespace parasol
