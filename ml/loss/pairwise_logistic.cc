#include "ml/loss/pairwise_logistic.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/field_checks.h"
#include "ml/kernel/loss/pairwise_logistic_loss.h"

namespace parasol {
namespace {

// An example that is in pairs.
struct Ranked {
  uint64_t group;
  float label;
  int32_t example;
};

std::vector<Ranked> InOrder(const ComparedExamples& examples) {
  std::vector<Ranked> ranked;
  for (int64_t i = 0; i < examples.size; ++i) {
    if (!examples.Counts(i)) continue;
    ranked.push_back(
        {.group = examples.columns.empty() ? 0 : examples.columns[0]->keys[i],
         .label = examples.labels[i],
         .example = static_cast<int32_t>(i)});
  }
  std::sort(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) {
    return std::tie(a.group, a.label, a.example) <
           std::tie(b.group, b.label, b.example);
  });
  return ranked;
}

// Examples of one group and one label lie together, with the lower labels of
// the group before them and the higher ones behind.
void ComparePairs(const job::Loss&, const ComparedExamples& examples,
                  Comparison& out) {
  const std::vector<Ranked> ranked = InOrder(examples);
  const auto size = static_cast<int32_t>(ranked.size());
  out.integers.clear();
  for (int32_t group = 0; group < size;) {
    int32_t end = group;
    while (end < size && ranked[end].group == ranked[group].group) ++end;
    for (int32_t first = group; first < end;) {
      int32_t last = first;
      while (last < end && ranked[last].label == ranked[first].label) ++last;
      for (int32_t i = first; i < last; ++i) {
        for (const int32_t field :
             {ranked[i].example, group, first, last, end}) {
          out.integers.push_back(field);
        }
      }
      first = last;
    }
    group = end;
  }
  // The rest is in no pair.
  for (int64_t i = 0; i < examples.size; ++i) {
    if (examples.Counts(i)) continue;
    for (const int32_t field : {static_cast<int32_t>(i), 0, 0, 0, 0}) {
      out.integers.push_back(field);
    }
  }
}

}  // namespace

constinit const LossKind kPairwiseLogisticKind = {
    .field = job::Loss::kPairwiseLogistic,
    .check = [](const std::string& path,
                const job::Loss& loss) -> absl::Status {
      const job::PairwiseLogistic& spec = loss.pairwise_logistic();
      if (spec.has_group() && spec.group().empty()) {
        return Fault(absl::StrCat(path, ".group"),
                     "is empty; name a column, or remove it");
      }
      return absl::OkStatus();
    },
    .check_outputs = [](const std::string& path,
                        int64_t outputs) -> absl::Status {
      if (outputs == 1) return absl::OkStatus();
      return Fault(path, absl::StrCat("needs one output, a score, and the "
                                      "model has ",
                                      outputs));
    },
    .label =
        [](int64_t) {
          return LabelForm{.kind = LabelForm::Kind::kNumbers, .width = 1};
        },
    .compute =
        [](Device& device, const job::Loss&, const LossBatch& batch,
           const LossResult& out) {
          return PairwiseLogisticLoss(device, batch, out);
        },
    .compare = ComparePairs,
    .columns =
        [](const job::Loss& loss) {
          std::vector<ExampleColumn> columns;
          if (loss.pairwise_logistic().has_group()) {
            columns.push_back({.name = loss.pairwise_logistic().group(),
                               .kind = ExampleColumn::Kind::kKey});
          }
          return columns;
        },
    .scratch = [](int64_t examples, int64_t) { return 2 * examples; },
};

}  // namespace parasol
