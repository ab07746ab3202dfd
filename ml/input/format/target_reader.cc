#include "ml/input/format/target_reader.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ml/input/feature/meaningless_label.h"

namespace parasol {
namespace {

size_t PlaceOf(const std::string& column, std::vector<std::string>& columns) {
  const auto known = std::find(columns.begin(), columns.end(), column);
  const size_t place = known - columns.begin();
  if (known == columns.end()) columns.push_back(column);
  return place;
}

}  // namespace

TargetReader::TargetReader(const ModelInputs& inputs,
                           std::vector<std::string>& columns) {
  for (const TargetInput& target : inputs.targets) {
    Entry& entry = entries_.emplace_back(
        Entry{.spec = target, .rule = LabelRule(target.label)});
    if (target.form.kind != LabelForm::Kind::kNone) {
      entry.label = PlaceOf(target.label.column(), columns);
    }
    if (!target.mask.empty()) entry.mask = PlaceOf(target.mask, columns);
  }
  for (const ExampleColumn& column : inputs.columns) {
    columns_.push_back(
        {.spec = column, .place = PlaceOf(column.name, columns)});
  }
}

absl::Status TargetReader::Append(const ColumnValues& row, Batch& batch) const {
  for (size_t i = 0; i < entries_.size(); ++i) {
    RETURN_IF_ERROR(AppendOne(entries_[i], row, batch.targets[i]))
        << "output \"" << entries_[i].spec.output << "\"";
  }
  for (size_t i = 0; i < columns_.size(); ++i) {
    RETURN_IF_ERROR(AppendValue(columns_[i], row, batch.columns[i]))
        << "column \"" << columns_[i].spec.name << "\"";
  }
  return absl::OkStatus();
}

absl::Status TargetReader::AppendOne(const Entry& entry,
                                     const ColumnValues& row, Target& target) {
  bool counts = !entry.label.has_value() || !row[*entry.label].empty();
  if (entry.mask.has_value()) {
    const std::vector<FieldValue>& values = row[*entry.mask];
    double mask = 0;
    if (!values.empty()) {
      ASSIGN_OR_RETURN(
          mask, OnlyNumber(values, absl::StrCat("mask ", entry.spec.mask)));
    }
    counts = counts && mask != 0;
  }
  if (counts && entry.label.has_value()) {
    RETURN_IF_ERROR(
        entry.rule.Append(entry.spec.form, row[*entry.label], target.labels));
  } else {
    AppendMeaninglessLabel(entry.spec.form, target.labels);
  }
  target.weights.push_back(counts ? 1.0f : 0.0f);
  return absl::OkStatus();
}

absl::Status TargetReader::AppendValue(const Column& column,
                                       const ColumnValues& row,
                                       ExampleValues& values) {
  const std::vector<FieldValue>& value = row[column.place];
  if (column.spec.kind == ExampleColumn::Kind::kProbability) {
    ASSIGN_OR_RETURN(const double number, OnlyNumber(value, "value"));
    return AppendProbability(number, values);
  }
  if (value.size() != 1) {
    return absl::DataLossError(
        absl::StrCat("has ", value.size(), " values, not 1"));
  }
  char buffer[FieldValue::kMaxNumberBytes];
  AppendKey(value.front().AsText(buffer), values);
  return absl::OkStatus();
}

}  // namespace parasol
