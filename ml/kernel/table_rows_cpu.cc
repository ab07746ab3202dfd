#include <algorithm>
#include <cstdint>

#include "base/multiversion.h"
#include "ml/kernel/table_rows.h"

namespace parasol::cpu {
namespace {

// to += scale · from
__attribute__((always_inline)) inline void AddScaled(const float* from,
                                                     float scale, int64_t width,
                                                     float* to) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < width; ++i) to[i] += scale * from[i];
}

// Returns the factor of each row of the example's bag beside its weight.
float ScaleOf(const Bags& bags, Combiner combiner, int64_t example) {
  if (combiner == Combiner::kSum) return 1;
  float sum = 0;
  for (int32_t i = bags.offsets[example]; i < bags.offsets[example + 1]; ++i) {
    sum += bags.weights == nullptr ? 1 : bags.weights[i];
  }
  return sum == 0 ? 0 : 1 / sum;
}

float WeightOf(const Bags& bags, int32_t i) {
  return bags.weights == nullptr ? 1 : bags.weights[i];
}

// Copies blocks whose size the compiler knows: rows are short, and a call of
// memcpy() takes longer than such a block.
PARASOL_MULTIVERSION void CopyRows(const TableRows& table,
                                   const int32_t* positions,
                                   MutableMatrixView y) {
  constexpr int64_t kBlock = 16;
  for (int64_t row = 0; row < y.rows; ++row) {
    const float* const from = table.row(positions[row]);
    float* const to = y.data + row * y.columns;
    int64_t i = 0;
    for (; i + kBlock <= y.columns; i += kBlock) {
      std::copy_n(from + i, kBlock, to + i);
    }
    if (i < y.columns) std::copy_n(from + i, y.columns - i, to + i);
  }
}

PARASOL_MULTIVERSION void AddRows(MatrixView dy, const int32_t* positions,
                                  float* rows) {
  for (int64_t i = 0; i < dy.rows; ++i) {
    AddScaled(dy.data + i * dy.columns, 1, dy.columns,
              rows + int64_t{positions[i]} * dy.columns);
  }
}

PARASOL_MULTIVERSION void Combine(const TableRows& table, const Bags& bags,
                                  Combiner combiner, MutableMatrixView y) {
  for (int64_t example = 0; example < y.rows; ++example) {
    const float scale = ScaleOf(bags, combiner, example);
    for (int32_t i = bags.offsets[example]; i < bags.offsets[example + 1];
         ++i) {
      AddScaled(table.row(bags.positions[i]), scale * WeightOf(bags, i),
                y.columns, y.data + example * y.columns);
    }
  }
}

PARASOL_MULTIVERSION void AddCombined(MatrixView dy, const Bags& bags,
                                      Combiner combiner, float* rows) {
  for (int64_t example = 0; example < dy.rows; ++example) {
    const float scale = ScaleOf(bags, combiner, example);
    for (int32_t i = bags.offsets[example]; i < bags.offsets[example + 1];
         ++i) {
      AddScaled(dy.data + example * dy.columns, scale * WeightOf(bags, i),
                dy.columns, rows + int64_t{bags.positions[i]} * dy.columns);
    }
  }
}

PARASOL_MULTIVERSION void CopySequences(const TableRows& table,
                                        const Bags& bags, int64_t length,
                                        MutableMatrixView y) {
  for (int64_t example = 0; example < bags.examples; ++example) {
    const int32_t begin = bags.offsets[example];
    const int64_t steps = bags.offsets[example + 1] - begin;
    float* to = y.data + example * length * y.columns;
    for (int64_t step = 0; step < steps; ++step, to += y.columns) {
      std::copy_n(table.row(bags.positions[begin + step]), y.columns, to);
    }
    std::fill_n(to, (length - steps) * y.columns, 0.0f);
  }
}

PARASOL_MULTIVERSION void AddSequences(MatrixView dy, const Bags& bags,
                                       int64_t length, float* rows) {
  for (int64_t example = 0; example < bags.examples; ++example) {
    const float* from = dy.data + example * length * dy.columns;
    for (int32_t i = bags.offsets[example]; i < bags.offsets[example + 1];
         ++i, from += dy.columns) {
      AddScaled(from, 1, dy.columns,
                rows + int64_t{bags.positions[i]} * dy.columns);
    }
  }
}

PARASOL_MULTIVERSION void AddAllRows(MatrixView dy, float* sum) {
  for (int64_t row = 0; row < dy.rows; ++row) {
    AddScaled(dy.data + row * dy.columns, 1, dy.columns, sum);
  }
}

}  // namespace

absl::Status GatherRows(Device& device, const TableRows* table,
                        const int32_t* positions, MutableMatrixView y) {
  CopyRows(*table, positions, y);
  return absl::OkStatus();
}

absl::Status AddToRows(Device& device, MatrixView dy, const int32_t* positions,
                       const RowPlaces& by_row, const TableRows* table) {
  AddRows(dy, positions, table->gradients);
  return absl::OkStatus();
}

absl::Status CombineRows(Device& device, const TableRows* table,
                         const Bags& bags, Combiner combiner, const float* bias,
                         MutableMatrixView y) {
  for (int64_t i = 0; i < y.rows; ++i) {
    float* const row = y.data + i * y.columns;
    if (bias == nullptr) {
      std::fill_n(row, y.columns, 0.0f);
    } else {
      std::copy_n(bias, y.columns, row);
    }
  }
  Combine(*table, bags, combiner, y);
  return absl::OkStatus();
}

absl::Status AddCombinedToRows(Device& device, MatrixView dy, const Bags& bags,
                               Combiner combiner, const TableRows* table) {
  AddCombined(dy, bags, combiner, table->gradients);
  return absl::OkStatus();
}

absl::Status SumColumns(Device& device, MatrixView dy, float* sum) {
  std::fill_n(sum, dy.columns, 0.0f);
  AddAllRows(dy, sum);
  return absl::OkStatus();
}

absl::Status GatherSequences(Device& device, const TableRows* table,
                             const Bags& bags, int64_t length,
                             MutableMatrixView y) {
  CopySequences(*table, bags, length, y);
  return absl::OkStatus();
}

absl::Status AddSequencesToRows(Device& device, MatrixView dy, const Bags& bags,
                                int64_t length, const TableRows* table) {
  AddSequences(dy, bags, length, table->gradients);
  return absl::OkStatus();
}

absl::Status MaskSequences(Device& device, const Bags& bags, int64_t length,
                           float* mask) {
  for (int64_t i = 0; i < bags.examples; ++i) {
    const int64_t steps = bags.offsets[i + 1] - bags.offsets[i];
    float* const of_example = mask + i * length;
    std::fill_n(of_example, steps, 1.0f);
    std::fill_n(of_example + steps, length - steps, 0.0f);
  }
  return absl::OkStatus();
}

}  // namespace parasol::cpu
