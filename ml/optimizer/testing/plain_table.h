#ifndef PARASOL_ML_OPTIMIZER_TESTING_PLAIN_TABLE_H_
#define PARASOL_ML_OPTIMIZER_TESTING_PLAIN_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "ml/optimizer/optimizer.h"

namespace parasol {

// A variable and its slots, one array each, for tests and benchmarks.
struct TestTable {
  TestTable(const Optimizer& optimizer, std::vector<float> initial)
      : value(std::move(initial)) {
    for (size_t s = 0; s < optimizer.slot_names().size(); ++s) {
      slots.emplace_back(value.size(), optimizer.InitialSlotValue(s));
    }
  }

  // Applies `gradient` in place to elements [first, first + gradient.size()).
  void Apply(const Optimizer& optimizer, int64_t iterations,
             absl::Span<const float> gradient, size_t first = 0) {
    std::vector<float*> slot_pointers = SlotsAt(first);
    optimizer.Apply(
        iterations,
        {.count = gradient.size(),
         .gradient = reinterpret_cast<const std::byte*>(gradient.data()),
         .value = value.data() + first,
         .new_value = value.data() + first,
         .slots = slot_pointers});
  }

  // Returns the address of element `first` of each slot.
  std::vector<float*> SlotsAt(size_t first) {
    std::vector<float*> pointers;
    for (std::vector<float>& slot : slots) {
      pointers.push_back(slot.data() + first);
    }
    return pointers;
  }

  std::vector<float> value;
  std::vector<std::vector<float>> slots;
};

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_TESTING_PLAIN_TABLE_H_
