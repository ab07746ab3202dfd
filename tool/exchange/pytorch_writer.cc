#include "tool/exchange/pytorch_writer.h"

#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "tool/exchange/moved_elements.h"
#include "tool/exchange/pytorch_tensors.h"

namespace parasol {
namespace {

// How a tensor becomes PyTorch's.
struct Move {
  RowOrder rows = {};             // the job's rows in PyTorch's order
  std::vector<size_t> axes = {};  // the job's axes in PyTorch's order

  bool is_none() const { return rows.empty() && axes.empty(); }
};

class PyTorchWriter : public TensorWriter {
 public:
  PyTorchWriter(std::vector<TensorPart> parts, std::vector<Move> moves,
                std::unique_ptr<TensorWriter> file)
      : TensorWriter(std::move(parts)),
        moves_(std::move(moves)),
        file_(std::move(file)) {}

 protected:
  absl::Status BeginPart(const TensorPart& /*part*/) override {
    elements_.clear();
    return absl::OkStatus();
  }

  absl::Status WriteElements(absl::string_view bytes) override {
    if (moves_[part_].is_none()) return file_->Append(bytes);
    elements_.insert(elements_.end(), bytes.begin(), bytes.end());
    return absl::OkStatus();
  }

  absl::Status EndPart(const TensorPart& part) override {
    const Move& move = moves_[part_++];
    if (move.is_none()) return absl::OkStatus();
    if (!move.rows.empty()) elements_ = Reordered(elements_, move.rows);
    if (!move.axes.empty()) {
      elements_ = Permuted(elements_, part.tensor.shape, move.axes,
                           BytesOf(part.tensor.type));
    }
    return file_->Append(absl::string_view(elements_.data(), elements_.size()));
  }

  absl::Status Commit() override { return file_->Finish(); }

 private:
  const std::vector<Move> moves_;
  const std::unique_ptr<TensorWriter> file_;
  size_t part_ = 0;
  std::vector<char> elements_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TensorWriter>> NewPyTorchWriter(
    const std::vector<TensorPart>& parts,
    const std::map<std::string, RowOrder>& orders,
    const NewTensorWriter& create) {
  std::vector<TensorPart> there = parts;
  std::vector<Move> moves(parts.size());
  std::set<std::string> names;
  for (size_t i = 0; i < parts.size(); ++i) {
    TensorInfo& info = there[i].tensor;
    const std::string variable = info.name;
    const auto order = orders.find(variable);
    if (order != orders.end()) {
      if (order->second.empty()) return UnknownRowOrder(variable);
      moves[i].rows = Inverse(order->second);
    }
    const std::string name = PyTorchName(variable);
    if (!name.empty()) info.name = name;
    if (there[i].part == 0 && !names.insert(info.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(variable, ": two tensors would be called ", info.name,
                       " in PyTorch; give one layer another name"));
    }
    // Axis i here is axis axes[i] there.
    const std::vector<size_t> axes =
        PyTorchKernelAxes(variable, info.shape.size());
    moves[i].axes.resize(axes.size());
    for (size_t axis = 0; axis < axes.size(); ++axis) {
      moves[i].axes[axes[axis]] = axis;
      info.shape[axes[axis]] = parts[i].tensor.shape[axis];
    }
    // A part is the whole tensor: only tables are cut.
    if (!axes.empty()) there[i].rows = info.shape[0];
  }
  ASSIGN_OR_RETURN(std::unique_ptr<TensorWriter> file,
                   create(std::move(there)));
  return std::make_unique<PyTorchWriter>(parts, std::move(moves),
                                         std::move(file));
}

}  // namespace parasol
