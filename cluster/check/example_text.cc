#include "cluster/check/example_text.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ml/model/graph_inputs.h"

namespace parasol {
namespace {

constexpr int64_t kShownNumbers = 8;

// "label 1", or "ctr 1" of a named output, or "ctr -" where the example does
// not count.
std::string LabelText(const Graph& graph, const Batch& batch, size_t output,
                      int64_t example) {
  const OutputSpec& spec = graph.outputs[output];
  const std::string name = spec.is_named() ? spec.name : "label";
  if (spec.is_named() && batch.targets[output].weights[example] == 0) {
    return absl::StrCat(name, " -");
  }
  const std::vector<float>& labels =
      spec.is_named() ? batch.targets[output].labels : batch.labels;
  const int64_t width = spec.loss.label.width;
  std::vector<std::string> shown;
  for (int64_t i = 0; i < std::min(width, kShownNumbers); ++i) {
    shown.push_back(absl::StrFormat("%.5g", labels[example * width + i]));
  }
  return absl::StrCat(name, " ", absl::StrJoin(shown, ", "));
}

}  // namespace

std::string ExampleText(const Graph& graph, const Batch& batch,
                        int64_t example) {
  std::vector<std::string> parts;
  for (const GraphInput& input : graph.inputs) {
    std::vector<std::string> shown;
    int64_t all = 0;
    if (input.what.kind == LayerInput::Kind::kIds) {
      const IdFeature& feature = batch.ids[input.index];
      const int32_t begin = feature.offsets[example];
      all = feature.offsets[example + 1] - begin;
      for (int64_t i = 0; i < std::min(all, kShownNumbers); ++i) {
        shown.push_back(absl::StrCat(feature.ids[begin + i]));
      }
    } else {
      const DenseFeature& feature = batch.dense[input.index];
      all = static_cast<int64_t>(feature.values.size()) / batch.size;
      for (int64_t i = 0; i < std::min(all, kShownNumbers); ++i) {
        shown.push_back(
            absl::StrFormat("%.5g", feature.values[example * all + i]));
      }
    }
    parts.push_back(absl::StrCat(
        input.name, " [", absl::StrJoin(shown, ", "),
        all > kShownNumbers ? absl::StrCat(", … ", all, " in all") : "", "]"));
  }
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    parts.push_back(LabelText(graph, batch, i, example));
  }
  if (!batch.weights.empty()) {
    parts.push_back(absl::StrFormat("weight %.5g", batch.weights[example]));
  }
  return absl::StrJoin(parts, "  ");
}

}  // namespace parasol
