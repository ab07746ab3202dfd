#include "ml/input/format/column_examples.h"

#include <utility>

#include "base/status_macros.h"
#include "ml/input/feature/meaningless_label.h"

namespace parasol {

ColumnExamples::ColumnExamples(ColumnFeatures features,
                               const SetOptions& options, bool has_weights)
    : features_(std::move(features)),
      columns_(features_.columns()),
      targets_(options.without_labels ? TargetReader()
                                      : TargetReader(options.inputs, columns_)),
      inputs_(options.inputs),
      without_labels_(options.without_labels),
      reads_label_(!without_labels_ && inputs_.has_one_label()),
      reads_weight_(!without_labels_ && has_weights) {}

absl::Status ColumnExamples::Append(const ColumnValues& row,
                                    const std::vector<FieldValue>& label,
                                    const std::vector<FieldValue>& weight,
                                    Batch& batch) const {
  RETURN_IF_ERROR(features_.Append(row, batch));
  if (without_labels_) {
    AppendMeaninglessLabels(inputs_, batch);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(targets_.Append(row, batch));
  if (reads_label_) {
    RETURN_IF_ERROR(label_rule_.Append(inputs_.label, label, batch.labels));
  }
  if (!reads_weight_) return absl::OkStatus();
  ASSIGN_OR_RETURN(const double number, OnlyNumber(weight, "weight"));
  return AppendWeight(number, batch.weights);
}

}  // namespace parasol
