#include "loop/core/reduce.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace parasol::loop {
namespace {

constexpr size_t kElementBytes[] = {sizeof(float), sizeof(int64_t)};

size_t BytesOf(const Tensor& value) {
  return value.size() * kElementBytes[value.dtype() == DType::kInt64];
}

const char* DataOf(const Tensor& value) {
  return value.dtype() == DType::kInt64
             ? reinterpret_cast<const char*>(value.ints().data())
             : reinterpret_cast<const char*>(value.values().data());
}

void AppendInt(int64_t number, std::string& bytes) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

// A tensor on its way to other processes: dtype, rank, sizes, elements.
void Append(const Tensor& value, std::string& bytes) {
  AppendInt(value.dtype() == DType::kInt64, bytes);
  AppendInt(value.rank(), bytes);
  for (int axis = 0; axis < value.rank(); ++axis) {
    AppendInt(value.shape()[axis], bytes);
  }
  bytes.append(DataOf(value), BytesOf(value));
}

// Takes tensors from the front of bytes.
class TensorReader {
 public:
  explicit TensorReader(absl::string_view bytes) : bytes_(bytes) {}

  bool is_at_end() const { return bytes_.empty(); }

  absl::StatusOr<Tensor> Next() {
    ASSIGN_OR_RETURN(const int64_t is_int, NextInt());
    ASSIGN_OR_RETURN(const int64_t rank, NextInt());
    if (rank < 0 || rank > IntList::kMost) return Malformed();
    TensorShape shape;
    for (int64_t axis = 0; axis < rank; ++axis) {
      ASSIGN_OR_RETURN(const int64_t size, NextInt());
      shape.Append(size);
    }
    if (!shape.Check().ok()) return Malformed();
    return is_int != 0 ? NextValues<int64_t>(shape) : NextValues<float>(shape);
  }

 private:
  static absl::Status Malformed() {
    return absl::UnavailableError("a peer's tensor can't be read");
  }

  absl::StatusOr<int64_t> NextInt() {
    int64_t number = 0;
    if (bytes_.size() < sizeof(number)) return Malformed();
    std::memcpy(&number, bytes_.data(), sizeof(number));
    bytes_.remove_prefix(sizeof(number));
    return number;
  }

  template <typename T>
  absl::StatusOr<Tensor> NextValues(const TensorShape& shape) {
    const size_t count = shape.size();
    if (bytes_.size() < count * sizeof(T)) return Malformed();
    std::vector<T> values(count);
    std::memcpy(values.data(), bytes_.data(), count * sizeof(T));
    bytes_.remove_prefix(count * sizeof(T));
    return MakeTensor(values, shape);
  }

  static Tensor MakeTensor(const std::vector<float>& v, const TensorShape& s) {
    return Tensor::Of(v, s);
  }
  static Tensor MakeTensor(const std::vector<int64_t>& v,
                           const TensorShape& s) {
    return Tensor::Ints(v, s);
  }

  absl::string_view bytes_;
};

absl::Status ShapeError(const Tensor& a, const Tensor& b) {
  return absl::InvalidArgumentError(absl::StrCat(
      "replicas have values of the shapes ", a.shape().ToString(), " and ",
      b.shape().ToString(), ": give an axis, or give all replicas one shape"));
}

absl::Status CheckAlike(absl::Span<const Tensor> values) {
  for (const Tensor& value : values) {
    RETURN_IF_ERROR(value.status());
    if (value.dtype() != values[0].dtype()) {
      return absl::InvalidArgumentError(
          "replicas have float32 and int64 values");
    }
  }
  return absl::OkStatus();
}

// A shape as three: what lies before an axis, the axis, and what is behind it.
struct AxisView {
  int64_t outer = 1;
  int64_t axis = 1;
  int64_t inner = 1;
};

AxisView ViewOf(const TensorShape& shape, int axis) {
  AxisView view;
  for (int i = 0; i < axis; ++i) view.outer *= shape[i];
  view.axis = shape[axis];
  for (int i = axis + 1; i < shape.rank(); ++i) view.inner *= shape[i];
  return view;
}

TensorShape WithoutAxis(const TensorShape& shape, int axis) {
  TensorShape rest;
  for (int i = 0; i < shape.rank(); ++i) {
    if (i != axis) rest.Append(shape[i]);
  }
  return rest;
}

// Returns the axis, counted from 0, that all values have and outside of which
// their shapes are equal.
absl::StatusOr<int> CheckAxis(int axis, absl::Span<const Tensor> values) {
  RETURN_IF_ERROR(CheckAlike(values));
  const int rank = values[0].rank();
  const int place = axis < 0 ? axis + rank : axis;
  if (place < 0 || place >= rank) {
    return absl::InvalidArgumentError(
        absl::StrCat("axis ", axis, " of a value of the shape ",
                     values[0].shape().ToString(), ": it has ", rank));
  }
  for (const Tensor& value : values) {
    if (value.rank() != rank || WithoutAxis(value.shape(), place) !=
                                    WithoutAxis(values[0].shape(), place)) {
      return ShapeError(values[0], value);
    }
  }
  return place;
}

template <typename T>
absl::Span<const T> ElementsOf(const Tensor& value) {
  if constexpr (std::is_same_v<T, float>) {
    return value.values();
  } else {
    return value.ints();
  }
}

template <typename T>
Tensor TensorOf(const std::vector<T>& elements, const TensorShape& shape) {
  if constexpr (std::is_same_v<T, float>) {
    return Tensor::Of(elements, shape);
  } else {
    return Tensor::Ints(elements, shape);
  }
}

template <typename T>
Tensor AddAll(bool is_mean, absl::Span<const Tensor> values) {
  const absl::Span<const T> first = ElementsOf<T>(values[0]);
  std::vector<T> sum(first.begin(), first.end());
  for (size_t i = 1; i < values.size(); ++i) {
    const absl::Span<const T> next = ElementsOf<T>(values[i]);
    for (size_t e = 0; e < sum.size(); ++e) sum[e] += next[e];
  }
  if (is_mean) {
    for (T& element : sum) element /= static_cast<T>(values.size());
  }
  return TensorOf(sum, values[0].shape());
}

template <typename T>
Tensor AddAlong(bool is_mean, int axis, absl::Span<const Tensor> values) {
  const TensorShape shape = WithoutAxis(values[0].shape(), axis);
  std::vector<T> sum(shape.size());
  int64_t counted = 0;
  for (const Tensor& value : values) {
    const AxisView view = ViewOf(value.shape(), axis);
    const T* element = ElementsOf<T>(value).data();
    counted += view.axis;
    for (int64_t o = 0; o < view.outer; ++o) {
      T* const to = sum.data() + o * view.inner;
      for (int64_t a = 0; a < view.axis; ++a) {
        for (int64_t i = 0; i < view.inner; ++i) to[i] += *element++;
      }
    }
  }
  if (is_mean && counted > 0) {
    for (T& element : sum) element /= static_cast<T>(counted);
  }
  return TensorOf(sum, shape);
}

template <typename T>
Tensor Concatenate(int axis, absl::Span<const Tensor> values) {
  TensorShape shape = values[0].shape();
  shape[axis] = 0;
  for (const Tensor& value : values) shape[axis] += value.shape()[axis];
  std::vector<T> joined;
  joined.reserve(shape.size());
  const int64_t outer = ViewOf(shape, axis).outer;
  for (int64_t o = 0; o < outer; ++o) {
    for (const Tensor& value : values) {
      const AxisView view = ViewOf(value.shape(), axis);
      const int64_t run = view.axis * view.inner;
      const T* const from = ElementsOf<T>(value).data() + o * run;
      joined.insert(joined.end(), from, from + run);
    }
  }
  return TensorOf(joined, shape);
}

}  // namespace

absl::StatusOr<std::vector<Tensor>> GatherValues(absl::string_view what,
                                                 std::vector<Tensor> locals,
                                                 Peers& peers) {
  for (const Tensor& value : locals) RETURN_IF_ERROR(value.status());
  if (peers.num_processes() == 1) return locals;
  std::string own;
  for (const Tensor& value : locals) Append(value, own);
  ASSIGN_OR_RETURN(const std::vector<std::string> gathered,
                   peers.AllGather(what, own));
  std::vector<Tensor> all;
  for (const std::string& bytes : gathered) {
    TensorReader reader(bytes);
    while (!reader.is_at_end()) {
      ASSIGN_OR_RETURN(all.emplace_back(), reader.Next());
    }
  }
  return all;
}

absl::StatusOr<Tensor> ReduceValues(bool is_mean,
                                    absl::Span<const Tensor> values) {
  RETURN_IF_ERROR(CheckAlike(values));
  for (const Tensor& value : values) {
    if (value.shape() != values[0].shape()) return ShapeError(values[0], value);
  }
  return values[0].dtype() == DType::kInt64 ? AddAll<int64_t>(is_mean, values)
                                            : AddAll<float>(is_mean, values);
}

absl::StatusOr<Tensor> ReduceValuesAlong(bool is_mean, int axis,
                                         absl::Span<const Tensor> values) {
  ASSIGN_OR_RETURN(axis, CheckAxis(axis, values));
  return values[0].dtype() == DType::kInt64
             ? AddAlong<int64_t>(is_mean, axis, values)
             : AddAlong<float>(is_mean, axis, values);
}

absl::StatusOr<Tensor> ConcatenateValues(int axis,
                                         absl::Span<const Tensor> values) {
  ASSIGN_OR_RETURN(axis, CheckAxis(axis, values));
  return values[0].dtype() == DType::kInt64 ? Concatenate<int64_t>(axis, values)
                                            : Concatenate<float>(axis, values);
}

}  // namespace parasol::loop
