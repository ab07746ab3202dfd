#include "ml/loss/in_batch_softmax.h"

#include <algorithm>
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
#include "ml/kernel/add.h"
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

// Number of examples whose products with all candidates are in memory at once.
// A batch of up to so many is computed as a whole.
constexpr int64_t kBlock = 1024;

// Parts of the scratch memory: queries and candidates [n, width] with the
// gradients by both, the dot products of a block's queries with all candidates
// [block, n], and if there are several blocks one's share of the candidates'
// gradient [n, width].
struct Parts {
  MutableMatrixView queries;
  MutableMatrixView candidates;
  MutableMatrixView query_gradient;
  MutableMatrixView candidate_gradient;
  MutableMatrixView products;
  MutableMatrixView share;
};

int64_t Scratch(int64_t examples, int64_t outputs) {
  const int64_t block = std::min(examples, kBlock);
  const int64_t share = block < examples ? outputs / 2 : 0;
  return examples * (2 * outputs + block + share);
}

Parts Divide(const LossBatch& batch) {
  const int64_t n = batch.outputs.rows;
  const int64_t width = batch.outputs.columns / 2;
  float* next = batch.scratch;
  const auto take = [&next](int64_t rows, int64_t columns) {
    const MutableMatrixView part = {next, rows, columns};
    next += part.size();
    return part;
  };
  Parts parts;
  parts.queries = take(n, width);
  parts.candidates = take(n, width);
  parts.query_gradient = take(n, width);
  parts.candidate_gradient = take(n, width);
  parts.products = take(std::min(n, kBlock), n);
  // Not there, and not used, if there is one block.
  parts.share = {next, n, width};
  return parts;
}

MutableMatrixView RowsOf(MutableMatrixView matrix, int64_t first,
                         int64_t rows) {
  return {matrix.data + first * matrix.columns, rows, matrix.columns};
}

// Computes the losses of the examples of `batch`, and their part in the
// gradients of `parts`.
absl::Status ComputeBlock(Device& device, const CandidateBatch& batch,
                          bool with_gradient, const Parts& parts,
                          float* losses) {
  const MutableMatrixView queries =
      RowsOf(parts.queries, batch.first, batch.rows);
  const MutableMatrixView products = RowsOf(parts.products, 0, batch.rows);
  // Named as a dense layer's gradient: queries · candidatesᵀ.
  RETURN_IF_ERROR(
      AffineInputGradient(device, queries, parts.candidates, products));
  RETURN_IF_ERROR(CandidateSoftmax(device, batch, with_gradient, products.data,
                                   losses + batch.first));
  if (!with_gradient) return absl::OkStatus();
  RETURN_IF_ERROR(Affine(
      device, products, parts.candidates, /*bias=*/nullptr, Epilogue::kNone,
      RowsOf(parts.query_gradient, batch.first, batch.rows)));
  const MutableMatrixView& sum = parts.candidate_gradient;
  const MutableMatrixView& share = batch.first == 0 ? sum : parts.share;
  RETURN_IF_ERROR(AffineVariableGradients(device, products, queries, share,
                                          /*dbias=*/nullptr));
  if (batch.first == 0) return absl::OkStatus();
  return Add(device, sum.data, share.data, sum.size(), AddEpilogue::kNone,
             sum.data);
}

absl::Status Compute(Device& device, const job::Loss& loss,
                     const LossBatch& batch, const LossResult& out) {
  const int64_t n = batch.outputs.rows;
  const int64_t both = batch.outputs.columns;
  const int64_t width = both / 2;
  const Parts parts = Divide(batch);
  const float* const outputs = batch.outputs.data;
  RETURN_IF_ERROR(
      CopyColumns(device, n, width, outputs, both, parts.queries.data, width));
  RETURN_IF_ERROR(CopyColumns(device, n, width, outputs + width, both,
                              parts.candidates.data, width));
  CandidateBatch block = {
      .size = n,
      .temperature = static_cast<float>(loss.in_batch_softmax().temperature()),
      .candidates = batch.integers,
      .log_probabilities = batch.numbers,
      .weights = batch.weights};
  for (; block.first < n; block.first += kBlock) {
    block.rows = std::min(kBlock, n - block.first);
    RETURN_IF_ERROR(ComputeBlock(device, block, out.gradient != nullptr, parts,
                                 out.losses));
  }
  if (out.gradient == nullptr) return absl::OkStatus();
  RETURN_IF_ERROR(CopyColumns(device, n, width, parts.query_gradient.data,
                              width, out.gradient, both));
  return CopyColumns(device, n, width, parts.candidate_gradient.data, width,
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
