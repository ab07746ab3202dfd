#include "storage/tensor_files/pickled_tensors.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "storage/tensor_files/pickle.h"

namespace parasol {
namespace {

using Kind = PickleValue::Kind;
using Items = std::vector<const PickleValue*>;

// Dictionaries may be shared and nested: these end what would not end.
constexpr int kMaxDepth = 16;
constexpr size_t kMaxEntries = 1 << 20;
constexpr size_t kMaxTensorNameBytes = 4096;
constexpr size_t kMaxNamesBytes = 64 << 20;  // of all tensors
constexpr size_t kMaxStorageBytes = 256;     // of a storage's name
constexpr size_t kMaxTensorAxes = 64;        // as PyTorch

// PyTorch's names of storages of the types that can be read.
constexpr std::pair<absl::string_view, ElementType> kStorages[] = {
    {"torch.HalfStorage", ElementType::kFloat16},
    {"torch.BFloat16Storage", ElementType::kBfloat16},
    {"torch.FloatStorage", ElementType::kFloat32},
    {"torch.DoubleStorage", ElementType::kFloat64},
    {"torch.IntStorage", ElementType::kInt32},
    {"torch.LongStorage", ElementType::kInt64}};

absl::Status BadTensor(absl::string_view name, absl::string_view what) {
  return absl::DataLossError(absl::StrCat("tensor ", name, ": ", what));
}

ElementType StorageType(absl::string_view storage) {
  for (const auto& [name, type] : kStorages) {
    if (name == storage) return type;
  }
  return ElementType::kOther;
}

bool IsCallOf(const PickleValue& value, absl::string_view function) {
  return value.kind == Kind::kCall && value.items[0]->kind == Kind::kGlobal &&
         value.items[0]->text == function;
}

// The numbers in a tuple; nullopt if it has something else, or too many.
std::optional<std::vector<int64_t>> NumbersIn(const PickleValue& tuple) {
  if (tuple.items.size() > kMaxTensorAxes) return std::nullopt;
  std::vector<int64_t> numbers;
  for (const PickleValue* const item : tuple.items) {
    if (item->kind != Kind::kNumber || item->number < 0) return std::nullopt;
    numbers.push_back(item->number);
  }
  return numbers;
}

// Returns true if the elements follow each other in the order of the axes.
bool AreContiguous(absl::Span<const int64_t> shape,
                   absl::Span<const int64_t> strides) {
  if (std::count(shape.begin(), shape.end(), 0) > 0) return true;
  uint64_t expected = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    if (shape[axis] == 1) continue;
    if (static_cast<uint64_t>(strides[axis]) != expected) return false;
    expected *= static_cast<uint64_t>(shape[axis]);
  }
  return true;
}

// ("storage", its class, its key, …)
absl::Status ReadStorage(const PickleValue& value, PickledTensor& tensor) {
  const Items* const id =
      value.kind == Kind::kPersistent ? &value.items[0]->items : nullptr;
  if (id == nullptr || id->size() < 3 || (*id)[1]->kind != Kind::kGlobal ||
      (*id)[2]->kind != Kind::kText ||
      (*id)[2]->text.size() > kMaxStorageBytes) {
    return BadTensor(tensor.info.name, "has no storage");
  }
  tensor.info.type = StorageType((*id)[1]->text);
  tensor.storage = (*id)[2]->text;
  return absl::OkStatus();
}

// The arguments of _rebuild_tensor_v2: storage, offset, shape, strides, …
absl::StatusOr<PickledTensor> ReadTensor(const std::string& name,
                                         const Items& arguments) {
  PickledTensor tensor = {.info = {.name = name}};
  if (arguments.size() < 4 || arguments[1]->kind != Kind::kNumber ||
      arguments[1]->number < 0) {
    return BadTensor(name, "has no place in its storage");
  }
  RETURN_IF_ERROR(ReadStorage(*arguments[0], tensor));
  tensor.offset = static_cast<uint64_t>(arguments[1]->number);
  std::optional<std::vector<int64_t>> shape = NumbersIn(*arguments[2]);
  const std::optional<std::vector<int64_t>> strides = NumbersIn(*arguments[3]);
  if (!shape || !strides || shape->size() != strides->size()) {
    return BadTensor(name, "has no shape, or other strides than axes");
  }
  tensor.is_contiguous = AreContiguous(*shape, *strides);
  tensor.info.shape = *std::move(shape);
  return tensor;
}

// Goes through dictionaries.
class Collector {
 public:
  absl::Status AddEntries(const std::string& prefix, const Items& items,
                          int depth) {
    if (depth > kMaxDepth) {
      return absl::DataLossError("dictionaries are nested too deep");
    }
    for (size_t i = 0; i < items.size(); i += 2) {
      if (++entries_ > kMaxEntries) {
        return absl::DataLossError("dictionaries have too many entries");
      }
      const PickleValue& key = *items[i];
      if (prefix.size() + key.text.size() > kMaxTensorNameBytes) {
        return absl::DataLossError(absl::StrCat(
            "a tensor's name has more than ", kMaxTensorNameBytes, " bytes"));
      }
      RETURN_IF_ERROR(
          AddEntry(absl::StrCat(prefix, key.kind == Kind::kNumber
                                            ? absl::StrCat(key.number)
                                            : key.text),
                   *items[i + 1], depth));
    }
    return absl::OkStatus();
  }

  std::vector<PickledTensor> TakeTensors() { return std::move(tensors_); }

 private:
  absl::Status AddEntry(const std::string& name, const PickleValue& value,
                        int depth) {
    if (value.kind == Kind::kDictionary) {
      return AddEntries(absl::StrCat(name, "."), value.items, depth + 1);
    }
    if (IsCallOf(value, "torch._utils._rebuild_tensor_v2")) {
      ASSIGN_OR_RETURN(PickledTensor tensor,
                       ReadTensor(name, value.items[1]->items));
      return AddTensor(std::move(tensor));
    }
    const bool is_parameter =
        IsCallOf(value, "torch._utils._rebuild_parameter") &&
        !value.items[1]->items.empty() && depth <= kMaxDepth;
    if (!is_parameter) return absl::OkStatus();
    return AddEntry(name, *value.items[1]->items[0], depth + 1);
  }

  absl::Status AddTensor(PickledTensor tensor) {
    names_bytes_ += tensor.info.name.size();
    if (names_bytes_ > kMaxNamesBytes) {
      return absl::DataLossError(absl::StrCat(
          "names of tensors have more than ", kMaxNamesBytes, " bytes"));
    }
    if (!names_.insert(tensor.info.name).second) {
      return BadTensor(tensor.info.name, "is there twice");
    }
    tensors_.push_back(std::move(tensor));
    return absl::OkStatus();
  }

  std::vector<PickledTensor> tensors_;
  std::set<std::string> names_;
  size_t entries_ = 0;
  size_t names_bytes_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<PickledTensor>> PickledTensors(
    absl::string_view pickle) {
  ASSIGN_OR_RETURN(const Pickle parsed, Pickle::Parse(pickle));
  if (parsed.top().kind != Kind::kDictionary) {
    return absl::InvalidArgumentError(
        "is no state_dict: write one with torch.save(model.state_dict(), "
        "PATH), or with safetensors.torch.save_file");
  }
  Collector collector;
  RETURN_IF_ERROR(collector.AddEntries("", parsed.top().items, /*depth=*/0));
  return collector.TakeTensors();
}

}  // namespace parasol
