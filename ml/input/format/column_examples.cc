#include "ml/input/format/column_examples.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ml/input/feature/meaningless_label.h"

namespace parasol {

ColumnExamples::ColumnExamples(ColumnFeatures features,
                               const SetOptions& options, bool has_weights,
                               const job::CsvLabel& label)
    : features_(std::move(features)),
      columns_(features_.columns()),
      targets_(options.without_labels ? TargetReader()
                                      : TargetReader(options.inputs, columns_)),
      inputs_(options.inputs),
      label_rule_(label),
      without_labels_(options.without_labels),
      reads_label_(!without_labels_ && inputs_.has_one_label()),
      reads_weight_(!without_labels_ && has_weights) {
  for (const std::string& column : inputs_.kept) {
    kept_places_.push_back(columns_.size());
    columns_.push_back(column);
  }
}

void ColumnExamples::AppendKept(const ColumnValues& row, Batch& batch) const {
  char buffer[FieldValue::kMaxNumberBytes];
  for (size_t i = 0; i < kept_places_.size(); ++i) {
    std::string& text = batch.kept[i].emplace_back();
    for (const FieldValue& value : row[kept_places_[i]]) {
      absl::StrAppend(&text, text.empty() ? "" : " ", value.AsText(buffer));
    }
  }
}

absl::Status ColumnExamples::Append(const ColumnValues& row,
                                    const std::vector<FieldValue>& label,
                                    const std::vector<FieldValue>& weight,
                                    Batch& batch) const {
  RETURN_IF_ERROR(features_.Append(row, batch));
  AppendKept(row, batch);
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
