#include "ml/optimizer/apply.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

// Rows that a gradient touches, each once.
struct DistinctRows {
  std::vector<int64_t> rows;
  std::vector<float> gradients;  // [rows.size(), width]
};

DistinctRows SumDuplicates(absl::Span<const int64_t> rows,
                           absl::Span<const float> gradients, size_t width) {
  DistinctRows distinct;
  absl::flat_hash_map<int64_t, size_t> places;
  for (size_t i = 0; i < rows.size(); ++i) {
    const float* gradient = gradients.data() + i * width;
    const auto [place, is_first] =
        places.try_emplace(rows[i], distinct.rows.size());
    if (is_first) {
      distinct.rows.push_back(rows[i]);
      distinct.gradients.insert(distinct.gradients.end(), gradient,
                                gradient + width);
      continue;
    }
    float* sum = distinct.gradients.data() + place->second * width;
    for (size_t j = 0; j < width; ++j) sum[j] += gradient[j];
  }
  return distinct;
}

const std::byte* Bytes(const float* values) {
  return reinterpret_cast<const std::byte*>(values);
}

// The rows, gathered as a sparse table keeps them, and scattered afterwards.
void ApplyToTouched(const Optimizer& optimizer, int64_t iterations,
                    const DistinctRows& touched,
                    const VariableArrays& variable) {
  const size_t width = variable.width;
  const size_t stride = optimizer.FloatsOfRow(width);
  std::vector<float> gathered(touched.rows.size() * stride);
  std::vector<float*> rows;
  // Calls copy(element of the variable's array, element of the gathered row,
  // number of elements).
  const auto for_each_array = [&](auto copy) {
    for (size_t i = 0; i < touched.rows.size(); ++i) {
      const size_t number = touched.rows[i];
      float* row = gathered.data() + i * stride;
      copy(variable.values.data() + number * width, row, width);
      row += width;
      for (size_t slot = 0; slot < variable.slots.size(); ++slot) {
        const size_t of_slot = optimizer.SlotWidth(slot, width);
        copy(variable.slots[slot] + number * of_slot, row, of_slot);
        row += of_slot;
      }
    }
  };
  for_each_array([](const float* array, float* row, size_t count) {
    std::copy_n(array, count, row);
  });
  for (size_t i = 0; i < touched.rows.size(); ++i) {
    rows.push_back(gathered.data() + i * stride);
  }
  optimizer.ApplyRows(iterations, {.count = rows.size(),
                                   .width = width,
                                   .gradients = Bytes(touched.gradients.data()),
                                   .rows = rows.data()});
  for_each_array([](float* array, const float* row, size_t count) {
    std::copy_n(row, count, array);
  });
}

// As a dense gradient, 0 in the other rows; their values come back unless the
// optimizer changes all.
void ApplyToAll(const Optimizer& optimizer, int64_t iterations,
                const DistinctRows& touched, const VariableArrays& variable) {
  const size_t width = variable.width;
  std::vector<float> dense(variable.values.size());
  for (size_t i = 0; i < touched.rows.size(); ++i) {
    std::copy_n(touched.gradients.data() + i * width, width,
                dense.data() + touched.rows[i] * width);
  }
  const bool all = optimizer.other_rows() == Optimizer::OtherRows::kAll;
  std::vector<float> updated(all ? 0 : variable.values.size());
  optimizer.Apply(iterations,
                  {.count = variable.values.size(),
                   .gradient = Bytes(dense.data()),
                   .value = variable.values.data(),
                   .new_value = all ? variable.values.data() : updated.data(),
                   .slots = variable.slots});
  if (all) return;
  for (const int64_t row : touched.rows) {
    std::copy_n(updated.data() + row * width, width,
                variable.values.data() + row * width);
  }
}

absl::Status CheckSlots(const Optimizer& optimizer,
                        const VariableArrays& variable) {
  if (variable.slots.size() == optimizer.slot_names().size()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the variable has ", variable.slots.size(),
                   " slots, the optimizer ", optimizer.slot_names().size()));
}

// Of an optimizer for rows alone, only rows of one element are variables.
absl::Status CheckIsNotOfRows(const Optimizer& optimizer,
                              const VariableArrays& variable) {
  for (size_t slot = 0; slot < optimizer.slot_names().size(); ++slot) {
    if (optimizer.SlotWidth(slot, variable.width) == variable.width) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("slot ", optimizer.slot_names()[slot],
                     " is one element for each row: the optimizer has no "
                     "update of a dense gradient"));
  }
  return absl::OkStatus();
}

absl::Status CheckRows(absl::Span<const int64_t> rows,
                       absl::Span<const float> gradients,
                       const VariableArrays& variable) {
  const size_t width = variable.width;
  if (width == 0 || variable.values.size() % width != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        variable.values.size(),
        " values are not a whole number of rows of width ", width));
  }
  if (gradients.size() != rows.size() * width) {
    return absl::InvalidArgumentError(
        absl::StrCat("a gradient of ", gradients.size(), " elements for ",
                     rows.size(), " rows of ", width));
  }
  const auto count = static_cast<int64_t>(variable.values.size() / width);
  for (const int64_t row : rows) {
    if (row >= 0 && row < count) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("row ", row, " is not in a variable of ", count, " rows"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ApplyDense(const Optimizer& optimizer, int64_t iterations,
                        absl::Span<const float> gradient,
                        const VariableArrays& variable) {
  RETURN_IF_ERROR(CheckSlots(optimizer, variable));
  RETURN_IF_ERROR(CheckIsNotOfRows(optimizer, variable));
  if (gradient.size() != variable.values.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a gradient of ", gradient.size(), " elements for ",
                     variable.values.size(), " values"));
  }
  optimizer.Apply(iterations, {.count = gradient.size(),
                               .gradient = Bytes(gradient.data()),
                               .value = variable.values.data(),
                               .new_value = variable.values.data(),
                               .slots = variable.slots});
  return absl::OkStatus();
}

absl::Status ApplySparse(const Optimizer& optimizer, int64_t iterations,
                         absl::Span<const int64_t> rows,
                         absl::Span<const float> gradients,
                         const VariableArrays& variable) {
  RETURN_IF_ERROR(CheckSlots(optimizer, variable));
  RETURN_IF_ERROR(CheckRows(rows, gradients, variable));
  const DistinctRows touched = SumDuplicates(rows, gradients, variable.width);
  if (optimizer.other_rows() == Optimizer::OtherRows::kUntouched) {
    ApplyToTouched(optimizer, iterations, touched, variable);
  } else {
    ApplyToAll(optimizer, iterations, touched, variable);
  }
  return absl::OkStatus();
}

}  // namespace parasol
