#ifndef PARASOL_SERVING_NESTED_VALUE_H_
#define PARASOL_SERVING_NESTED_VALUE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace parasol {

// The shape of a value in nested lists, as it is read from its begin to its
// end. All lists of a level must have the same length, and elements stand on
// one level.
class NestedValue {
 public:
  static constexpr size_t kMaxDepth = 8;

  void Begin() {
    counts_.clear();
    shape_.clear();
    has_element_ = false;
  }

  // Take the next token. False: the lists are ragged, or too deep.
  bool Element() {
    if (has_element_ && counts_.size() != element_depth_) return false;
    has_element_ = true;
    element_depth_ = counts_.size();
    CountOne();
    return true;
  }
  bool Open() {
    if (counts_.size() == kMaxDepth) return false;
    if (has_element_ && counts_.size() >= element_depth_) return false;
    CountOne();
    counts_.push_back(0);
    return true;
  }
  bool Close() {
    const int64_t length = counts_.back();
    counts_.pop_back();
    const size_t level = counts_.size();
    if (shape_.size() <= level) shape_.resize(level + 1, -1);
    if (shape_[level] == -1) shape_[level] = length;
    return shape_[level] == length;
  }

  // True while a list is open.
  bool is_open() const { return !counts_.empty(); }
  // The shape, once nothing is open. Empty for a single element.
  const std::vector<int64_t>& shape() const { return shape_; }

 private:
  void CountOne() {
    if (!counts_.empty()) ++counts_.back();
  }

  std::vector<int64_t> counts_;  // elements so far of each open list
  std::vector<int64_t> shape_;   // -1: no list of this level has ended
  bool has_element_ = false;
  size_t element_depth_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_SERVING_NESTED_VALUE_H_
