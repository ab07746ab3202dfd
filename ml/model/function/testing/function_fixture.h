#ifndef PARASOL_ML_MODEL_FUNCTION_TESTING_FUNCTION_FIXTURE_H_
#define PARASOL_ML_MODEL_FUNCTION_TESTING_FUNCTION_FIXTURE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "gtest/gtest.h"
#include "ml/input/feature/batch.h"
#include "ml/model/function/function_graph.h"
#include "ml/model/function/model_function.h"
#include "ml/model/input_views.h"
#include "ml/model/testing/model_fixture.h"

namespace parasol {

// Views of the inputs of a batch, which must outlive it.
class BatchViews {
 public:
  explicit BatchViews(const Batch& batch) : size_(batch.size) {
    for (const DenseFeature& dense : batch.dense) {
      dense_.push_back(dense.values);
    }
    for (const IdFeature& ids : batch.ids) {
      ids_.push_back(
          {.offsets = ids.offsets, .ids = ids.ids, .weights = ids.weights});
    }
  }
  BatchViews(const BatchViews&) = delete;
  BatchViews& operator=(const BatchViews&) = delete;

  InputViews all() const {
    return {.size = size_, .dense = dense_, .ids = ids_};
  }

 private:
  const int64_t size_;
  std::vector<absl::Span<const float>> dense_;
  std::vector<IdsView> ids_;
};

inline std::vector<absl::Span<const float>> ConstSpans(const Values& values) {
  return {values.begin(), values.end()};
}
inline std::vector<absl::Span<float>> Spans(Values& values) {
  std::vector<absl::Span<float>> spans;
  for (std::vector<float>& value : values) {
    spans.push_back(absl::MakeSpan(value));
  }
  return spans;
}

// Element `index` of row `id` of a table.
inline float RowElement(size_t table, uint64_t id, size_t index) {
  return .01f * ((id * 31 + index * 7 + table * 13) % 101) - .5f;
}
inline void FillRows(size_t table, absl::Span<const uint64_t> ids,
                     absl::Span<float> values) {
  const size_t width = values.size() / ids.size();
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = RowElement(table, ids[i / width], i % width);
  }
}

// Functions on the CPU.
class FunctionTestBase : public ModelTestBase {
 protected:
  // Gradients of a call. Arrays that are not wanted are empty.
  struct Computed {
    Values variables = {};
    Values inputs = {};
    std::vector<std::vector<uint64_t>> ids = {};  // one list for each table
    Values rows = {};
    std::vector<size_t> written = {};
  };

  std::unique_ptr<ModelFunction> MakeFunction(const job::Model& spec) {
    absl::StatusOr<Graph> graph = ResolveFunction(spec);
    EXPECT_OK(graph);
    absl::StatusOr<std::unique_ptr<ModelFunction>> function =
        ModelFunction::Create(*std::move(graph), device());
    EXPECT_OK(function);
    return *std::move(function);
  }
  std::unique_ptr<ModelFunction> MakeFunction(const std::string& text) {
    return MakeFunction(ParseModel(text));
  }

  // Values with which no layer saturates.
  static Values ValuesFor(const Graph& graph) {
    Values values;
    for (size_t i = 0; i < graph.variables.size(); ++i) {
      const VariableSpec& variable = graph.variables[i];
      const reference::Matrix m = RandomMatrix(1, variable.elements(), i + 1);
      std::vector<float>& value = values.emplace_back();
      for (const double one : m.values) {
        const auto element = static_cast<float>(one);
        value.push_back(variable.trained ? .5f * element : 1 + .5f * element);
      }
    }
    return values;
  }

  static Values WantTrained(const Graph& graph) {
    Values values;
    for (const VariableSpec& variable : graph.variables) {
      values.emplace_back(variable.trained ? variable.elements() : 0, -77.f);
    }
    return values;
  }
  static Values WantInputs(const Batch& batch) {
    Values values;
    for (const DenseFeature& dense : batch.dense) {
      values.emplace_back(dense.values.size(), -77.f);
    }
    return values;
  }

  static absl::StatusOr<ModelFunction::Call> Forward(
      ModelFunction& function, const InputViews& inputs, const Values& values,
      const ModelFunction::Mode& mode) {
    return function.Forward(inputs, ConstSpans(values), mode,
                            [](size_t table, absl::Span<const uint64_t> ids,
                               absl::Span<float> rows) {
                              FillRows(table, ids, rows);
                              return absl::OkStatus();
                            });
  }

  // Writes the gradients that `computed` has arrays for, and the rows'.
  static absl::Status Backward(ModelFunction& function,
                               const ModelFunction::Call& call,
                               const Values& output_gradients,
                               Computed& computed) {
    computed.ids.resize(function.graph().tables.size());
    computed.rows.resize(function.graph().tables.size());
    const auto rows = [&](size_t table, absl::Span<const uint64_t> ids,
                          absl::Span<const float> gradients) {
      computed.ids[table].assign(ids.begin(), ids.end());
      computed.rows[table].assign(gradients.begin(), gradients.end());
    };
    const auto written = [&](size_t variable) {
      computed.written.push_back(variable);
    };
    const auto variables = Spans(computed.variables);
    const auto inputs = Spans(computed.inputs);
    return function.Backward(call, ConstSpans(output_gradients),
                             {.variables = variables,
                              .inputs = inputs,
                              .rows = rows,
                              .written = written});
  }
};

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_FUNCTION_TESTING_FUNCTION_FIXTURE_H_
