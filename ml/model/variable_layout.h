#ifndef PARASOL_ML_MODEL_VARIABLE_LAYOUT_H_
#define PARASOL_ML_MODEL_VARIABLE_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ml/model/graph.h"
#include "ml/model/plan.h"

namespace parasol {

// The variables [begin, end) of a model.
struct VariableRange {
  size_t begin = 0;
  size_t end = 0;

  bool empty() const { return begin == end; }
  bool Contains(size_t variable) const {
    return variable >= begin && variable < end;
  }
  // Returns true if both have a variable.
  bool Meets(const VariableRange& other) const {
    return begin < other.end && other.begin < end;
  }
  friend bool operator==(const VariableRange&, const VariableRange&) = default;
};

// The place of each of a model's variables in one array of all, and the pieces
// in which a device copies that array: each copy costs a start, and the first
// can leave while the rest of the array is still being written.
struct VariableLayout {
  // There is a piece for each kMinElements, 256 KiB, for which a bus takes
  // about as long as for the start of a copy; this many at most.
  static constexpr int64_t kMaxPieces = 4;
  static constexpr int64_t kMinElements = 1 << 16;

  std::vector<int64_t> offsets;  // one for each variable, and the array's size
  // Ascending; together all variables. They end where layers end.
  std::vector<VariableRange> pieces;
  // Two for each variable: its piece, and the first variable of its layer.
  std::vector<size_t> piece_of;
  std::vector<size_t> layer_begin;

  int64_t size() const { return offsets.back(); }
};

VariableLayout LayOutVariables(const Graph& graph);

// Returns, for each operation of the plan's backward pass, which of `pieces`
// are complete with it, in the order of `pieces`: their gradients leave behind
// it.
std::vector<std::vector<VariableRange>> PiecesBehind(
    const Plan& plan, const std::vector<VariableRange>& pieces);

// Returns, for each operation of the plan's backward pass, the variables of its
// step, whose gradients leave as soon as they are written.
std::vector<std::vector<VariableRange>> VariablesBehind(const Plan& plan);

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_VARIABLE_LAYOUT_H_
