#include "ml/loss/in_batch_softmax.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/field_checks.h"
#include "base/set_default.h"
#include "base/status_macros.h"
#include "ml/kernel/affine.h"
#include "ml/kernel/copy_columns.h"
#include "ml/kernel/loss/candidate_softmax.h"

namespace parasol {
namespace {

constexpr double kLeastTemperature = 1e-6;
constexpr double kLargestTemperature = 1e6;

absl::Status Check(const std::string& path, const job::Loss& loss) {
  const job::InBatchSoftmax& spec = loss.in_batch_softmax();
  const bool has_empty_name =
      (spec.has_candidate() && spec.candidate().empty()) ||
      (spec.has_candidate_probability() &&
       spec.candidate_probability().empty());
  if (has_empty_name) {
    return Fault(path,
                 "candidate or candidate_probability is empty; name a column, "
                 "or remove it");
  }
  return RequireBetween(absl::StrCat(path, ".temperature"), spec.temperature(),
                        kLeastTemperature, kLargestTemperature);
}

std::vector<ExampleColumn> Columns(const job::Loss& loss) {
  const job::InBatchSoftmax& spec = loss.in_batch_softmax();
  std::vector<ExampleColumn> columns;
  if (spec.has_candidate()) {
    columns.push_back(
        {.name = spec.candidate(), .kind = ExampleColumn::Kind::kKey});
  }
  if (spec.has_candidate_probability()) {
    columns.push_back({.name = spec.candidate_probability(),
                       .kind = ExampleColumn::Kind::kProbability});
  }
  return columns;
}

// The integers are the numbers of the candidates within the batch, equal for
// equal ids, and -1 for examples that do not count. The numbers are the
// logarithms of their probabilities.
void CompareCandidates(const job::Loss& loss, const ComparedExamples& examples,
                       Comparison& out) {
  const job::InBatchSoftmax& spec = loss.in_batch_softmax();
  const ExampleValues* const ids =
      spec.has_candidate() ? examples.columns.front() : nullptr;
  absl::flat_hash_map<uint64_t, int32_t> numbers;
  out.integers.assign(examples.size, -1);
  for (int64_t i = 0; i < examples.size; ++i) {
    if (!examples.Counts(i)) continue;
    const auto own = static_cast<int32_t>(i);
    out.integers[i] =
        ids == nullptr ? own : numbers.emplace(ids->keys[i], own).first->second;
  }
  out.numbers.clear();
  if (!spec.has_candidate_probability()) return;
  for (const float probability : examples.columns.back()->numbers) {
    out.numbers.push_back(std::log(probability));
  }
}

// Parts of the scratch memory: queries and candidates [n, width] with the
// gradients by both, and the dot products [n, n].
int64_t Scratch(int64_t examples, int64_t outputs) {
  return examples * (2 * outputs + examples);
}

absl::Status Compute(Device& device, const job::Loss& loss,
                     const LossBatch& batch, const LossResult& out) {
  const int64_t n = batch.outputs.rows;
  const int64_t both = batch.outputs.columns;
  const int64_t width = both / 2;
  float* next = batch.scratch;
  const auto take = [&next](int64_t rows, int64_t columns) {
    const MutableMatrixView part = {next, rows, columns};
    next += part.size();
    return part;
  };
  const MutableMatrixView queries = take(n, width);
  const MutableMatrixView candidates = take(n, width);
  const MutableMatrixView query_gradient = take(n, width);
  const MutableMatrixView candidate_gradient = take(n, width);
  const MutableMatrixView products = take(n, n);

  const float* const outputs = batch.outputs.data;
  RETURN_IF_ERROR(
      CopyColumns(device, n, width, outputs, both, queries.data, width));
  RETURN_IF_ERROR(CopyColumns(device, n, width, outputs + width, both,
                              candidates.data, width));
  // The name is that of a dense layer's gradient: queries · candidatesᵀ.
  RETURN_IF_ERROR(AffineInputGradient(device, queries, candidates, products));
  RETURN_IF_ERROR(CandidateSoftmax(
      device,
      {.size = n,
       .temperature = static_cast<float>(loss.in_batch_softmax().temperature()),
       .candidates = batch.integers,
       .log_probabilities = batch.numbers,
       .weights = batch.weights},
      out.gradient != nullptr, products.data, out.losses));
  if (out.gradient == nullptr) return absl::OkStatus();
  RETURN_IF_ERROR(Affine(device, products, candidates, /*bias=*/nullptr,
                         Epilogue::kNone, query_gradient));
  RETURN_IF_ERROR(AffineVariableGradients(
      device, products, queries, candidate_gradient, /*dbias=*/nullptr));
  RETURN_IF_ERROR(CopyColumns(device, n, width, query_gradient.data, width,
                              out.gradient, both));
  return CopyColumns(device, n, width, candidate_gradient.data, width,
                     out.gradient + width, both);
}

}  // namespace

constinit const LossKind kInBatchSoftmaxKind = {
    .field = job::Loss::kInBatchSoftmax,
    .fill_defaults =
        [](job::Loss& loss) {
          PARASOL_SET_DEFAULT(*loss.mutable_in_batch_softmax(), temperature,
                              1.0);
        },
    .check = Check,
    .check_outputs = [](const std::string& path,
                        int64_t outputs) -> absl::Status {
      if (outputs % 2 == 0) return absl::OkStatus();
      return Fault(path, absl::StrCat("needs outputs [2, width], the vectors "
                                      "of a query and of its candidate, and "
                                      "the model has ",
                                      outputs));
    },
    .axes = 2,
    .label =
        [](int64_t) {
          return LabelForm{.kind = LabelForm::Kind::kNone, .width = 0};
        },
    .compute = Compute,
    .compare = CompareCandidates,
    .columns = Columns,
    .scratch = Scratch,
};

}  // namespace parasol
