#ifndef PARASOL_ML_TAPE_TENSOR_SHAPE_H_
#define PARASOL_ML_TAPE_TENSOR_SHAPE_H_

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace parasol {

// A list of at most 8 integers, which allocates nothing: sizes, axes or places.
class IntList {
 public:
  static constexpr int kMost = 8;

  IntList() = default;
  IntList(std::initializer_list<int64_t> values)  // NOLINT
      : IntList(absl::MakeConstSpan(values.begin(), values.size())) {}
  // Keeps the first 8 of `values`; is_too_long() then.
  explicit IntList(absl::Span<const int64_t> values);

  int size() const { return size_; }
  int64_t operator[](int i) const { return values_[i]; }
  int64_t& operator[](int i) { return values_[i]; }
  absl::Span<const int64_t> values() const {
    return absl::MakeConstSpan(values_.data(), size_);
  }
  // Requires that there are fewer than 8.
  void Append(int64_t value) { values_[size_++] = value; }
  // Returns true if the list was made of more than 8 values.
  bool is_too_long() const { return is_too_long_; }
  // Returns "[2, 3]".
  std::string ToString() const;

  friend bool operator==(const IntList& a, const IntList& b) {
    return a.is_too_long_ == b.is_too_long_ && a.values() == b.values();
  }

 private:
  std::array<int64_t, kMost> values_ = {};
  int size_ = 0;
  bool is_too_long_ = false;
};

// The sizes of a tensor's axes, the outermost first; none for a scalar.
class TensorShape {
 public:
  TensorShape() = default;
  TensorShape(std::initializer_list<int64_t> sizes)  // NOLINT
      : sizes_(sizes) {}
  explicit TensorShape(absl::Span<const int64_t> sizes) : sizes_(sizes) {}
  explicit TensorShape(const IntList& sizes) : sizes_(sizes) {}

  // Number of axes.
  int rank() const { return sizes_.size(); }
  int64_t operator[](int axis) const { return sizes_[axis]; }
  int64_t& operator[](int axis) { return sizes_[axis]; }
  const IntList& sizes() const { return sizes_; }
  // Number of elements: the product of the sizes, 1 for a scalar.
  int64_t size() const;
  // Adds an innermost axis. Requires that there are fewer than 8.
  void Append(int64_t size) { sizes_.Append(size); }
  std::string ToString() const { return sizes_.ToString(); }

  // Returns OK if a tensor can have this shape.
  //   InvalidArgument  more than 8 axes, a size below 0, or more than 2^40
  //                    elements: shows the shape.
  absl::Status Check() const;

  friend bool operator==(const TensorShape&, const TensorShape&) = default;

 private:
  IntList sizes_;
};

}  // namespace parasol

#endif  // PARASOL_ML_TAPE_TENSOR_SHAPE_H_
