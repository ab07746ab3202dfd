#include "cluster/check/data_check.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/did_you_mean.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "base/uri/topic_uri.h"
#include "cluster/check/class_shares.h"
#include "cluster/check/example_text.h"
#include "cluster/check/id_columns.h"
#include "cluster/check/list_columns.h"
#include "cluster/check/value_counts.h"
#include "ml/input/feature/column_features.h"
#include "ml/input/feature/model_inputs.h"
#include "ml/input/file/file_set.h"
#include "ml/input/file/set_memory.h"
#include "ml/input/format/csv_fields.h"
#include "ml/input/format/csv_set.h"
#include "ml/input/format/dataset_columns.h"
#include "ml/input/input_pipeline.h"
#include "ml/model/graph_inputs.h"

namespace parasol {
namespace {

constexpr int64_t kRows = 5;
constexpr int kBatch = 1024;
constexpr size_t kMaxIds = 4'000'000;  // told apart, of each table
// Different values that are told apart, of all columns together and of one.
constexpr size_t kAllValues = 2'000'000;
constexpr size_t kMostValues = 100'000;
constexpr size_t kLeastValues = 1000;

// f(x) of docs/job/data.md, before the mean is subtracted.
double Transformed(const job::NumericColumn& column, double x) {
  if (!column.log1p()) return x;
  return x > 0 ? std::log1p(x) : 0;
}

// Counts what a dense input makes of a column before it is normalized.
void AddTransformed(const job::NumericColumn& column,
                    const std::vector<FieldValue>& values,
                    NumberStatistics& statistics) {
  if (values.empty() && column.has_default_value()) {
    statistics.Add(Transformed(column, column.default_value()));
  }
  for (const FieldValue& value : values) {
    const std::optional<double> number = value.AsNumber();
    if (number.has_value()) statistics.Add(Transformed(column, *number));
  }
}

}  // namespace

void DataCheck::Fault(const std::string& path, const std::string& what) {
  if (!faulty_.insert(path).second) return;
  found_.faults.push_back(absl::StrCat(path, ": ", what));
}

// True for an error that another program, which has the code, would not have,
// and at a start for one that may pass: who trains opens the data, too, and
// starts again.
bool DataCheck::IsLeftOut(const absl::Status& status) const {
  if (absl::IsUnavailable(status) || absl::IsResourceExhausted(status)) {
    return options_.sample_bytes > 0;
  }
  return options_.code_is_elsewhere && absl::IsFailedPrecondition(status);
}

void DataCheck::Check(const std::string& name, const job::Dataset& dataset) {
  const int64_t memory_before = memory_bytes_;
  if (!FindAllFiles(name, dataset)) return;
  if (dataset.has_custom() && options_.sample_bytes > 0) return;
  DatasetReport report;
  report.name = name;
  absl::StatusOr<std::unique_ptr<RawColumns>> columns =
      RawColumns::Open(dataset, options_.data_dir, WantedColumns(name, dataset),
                       options_.sample_bytes);
  if (!columns.ok()) {
    if (IsLeftOut(columns.status())) return;
    Fault(name, std::string(columns.status().message()));
    return;
  }
  bool is_good = true;
  if (*columns != nullptr) {
    if (const std::optional<uint64_t> bytes = (*columns)->unpacked_bytes()) {
      memory_bytes_ =
          memory_before + static_cast<int64_t>(MemoryOfSet({}, *bytes));
    }
    is_good = CheckColumns(name, dataset, **columns, report);
    columns->reset();  // its memory, before the examples take theirs
  }
  if (is_good && graph_ != nullptr) {
    const absl::Status status = ReadExamples(name, dataset, report);
    if (!status.ok() && !IsLeftOut(status)) {
      Fault(name, std::string(status.message()));
    }
    WarnOfClasses(report);
  }
  found_.data_sets.push_back(std::move(report));
}

// Of Parquet files also the columns of inputs that name none, if it is known
// which they are: others are not read.
std::vector<std::string> DataCheck::WantedColumns(
    const std::string& name, const job::Dataset& dataset) const {
  std::vector<std::string> wanted;
  for (const ColumnUse& use : ColumnUses(job_, name, dataset, nullptr)) {
    wanted.push_back(use.column);
  }
  const auto names_none = [](const job::ModelInput& input) {
    return input.dense().column().empty() && input.ids().column().empty();
  };
  const auto& inputs = job_.model().input();
  if (!dataset.has_parquet() ||
      std::none_of(inputs.begin(), inputs.end(), names_none)) {
    return wanted;
  }
  absl::StatusOr<Columns> columns =
      ::parasol::ReadColumns(dataset, options_.data_dir);
  if (!columns.ok()) return wanted;
  for (const ColumnUse& use : ColumnUses(job_, name, dataset, nullptr)) {
    if (!use.is_input) columns->labels_and_weights.push_back(use.column);
  }
  for (const job::ModelInput& input : inputs) {
    if (!names_none(input)) continue;
    const absl::StatusOr<std::string> own = OwnColumn(input, *columns);
    if (own.ok()) wanted.push_back(*own);
  }
  return wanted;
}

// False if examples can't be made of the columns.
bool DataCheck::CheckColumns(const std::string& name,
                             const job::Dataset& dataset, RawColumns& columns,
                             DatasetReport& report) {
  report.is_sample = columns.is_sample();
  is_partial_ = is_partial_ || columns.is_sample() ||
                columns.size() > options_.max_examples;
  const std::vector<ColumnUse> uses = ColumnUses(job_, name, dataset, &columns);
  const bool is_damaged =
      dataset.on_corrupt() != job::Dataset::SKIP && !columns.CheckWhole().ok();
  if (is_damaged) {
    Fault(name, std::string(columns.CheckWhole().message()));
  }
  // A TFRecord's names are in its records, which are perhaps lost.
  const bool knows_names =
      !dataset.has_tfrecord() ||
      (!is_damaged && (columns.size() > 0 || !columns.is_sample()));
  const bool has_names =
      !knows_names || HasNames(uses, name, dataset, columns.names());
  ReadColumns(uses, name, dataset, columns, report);
  return has_names && !is_damaged && knows_names;
}

void DataCheck::Finish() {
  std::set<std::string> named;  // texts
  for (const auto& [path, label] : labels_) {
    for (const LabelValues::Unseen& unseen :
         label_values_[label->column()].NeverSeen(path, *label)) {
      if (named.insert(absl::StrCat(label->column(), "\n", unseen.name))
              .second) {
        found_.warnings.push_back(absl::StrCat(
            unseen.line, is_partial_ ? " (in a sample of the data)" : ""));
      }
    }
  }
}

bool DataCheck::FindAllFiles(const std::string& name,
                             const job::Dataset& dataset) {
  bool found_all = true;
  uint64_t bytes_of_set = 0;
  for (const FileUse& use : FileUses(name, dataset)) {
    const absl::StatusOr<FoundFiles> files =
        FindFiles(options_.data_dir, {use.pattern}, use.path);
    if (!files.ok()) {
      found_all = false;
      absl::Status fault = files.status();
      // They may be yet to come, to a folder that is there, or to a topic.
      if (dataset.follow() &&
          (absl::IsNotFound(fault) || IsTopicUri(use.pattern))) {
        fault = CheckFoldersOfGrowingSet(options_.data_dir, {use.pattern});
      }
      if (fault.ok() || IsLeftOut(fault)) continue;
      Fault(use.path, std::string(fault.message()));
      continue;
    }
    bytes_of_set += files->bytes;
  }
  // A source of the user's own has what it likes in memory.
  memory_bytes_ += static_cast<int64_t>(
      dataset.has_custom() ? bytes_of_set : MemoryOfSet({}, bytes_of_set));
  return found_all;
}

bool DataCheck::HasNames(const std::vector<ColumnUse>& uses,
                         const std::string& name, const job::Dataset& dataset,
                         const std::vector<std::string>& columns) {
  bool are_there = true;
  for (const ColumnUse& use : uses) {
    const std::string twice = NamedTwice(use.column, columns);
    if (!twice.empty()) {
      are_there = false;
      Fault(use.path, twice);
      continue;
    }
    if (std::find(columns.begin(), columns.end(), use.column) !=
        columns.end()) {
      continue;
    }
    are_there = false;
    Fault(use.path,
          absl::StrCat(
              "the ", name, " data have no column \"", use.column, "\", but ",
              ShownList(columns), DidYouMean(use.column, columns),
              dataset.has_csv() ? DelimiterHint(use.column, columns) : ""));
  }
  return are_there;
}

void DataCheck::ReadColumns(const std::vector<ColumnUse>& uses,
                            const std::string& name,
                            const job::Dataset& dataset, RawColumns& columns,
                            DatasetReport& report) {
  absl::flat_hash_map<std::string, size_t> index;
  for (const std::string& column : columns.names()) {
    index.emplace(column, report.columns.size());
    report.columns.emplace_back().name = column;
  }
  std::map<std::string, size_t> labels;  // places by column
  std::vector<bool> is_of_ids(report.columns.size());
  for (const ColumnUse& use : uses) {
    const auto column = index.find(use.column);
    if (column == index.end()) continue;
    AddUse(use.use, report.columns[column->second].use);
    if (use.is_label) labels.emplace(use.column, column->second);
    if (use.is_label || use.is_ids) is_of_ids[column->second] = true;
  }
  std::vector<ValueCounts> counts(
      report.columns.size(),
      ValueCounts(std::clamp(kAllValues / std::max<size_t>(1, index.size()),
                             kLeastValues, kMostValues)));
  std::vector<NumberStatistics> transformed(uses.size());
  ListColumns lists(uses, dataset, columns.names());
  ColumnValues row;
  const int64_t records = std::min(columns.size(), options_.max_examples);
  for (int64_t record = 0; record < records; ++record) {
    // A corrupt one is the examples' fault.
    if (!columns.Read(record, row).ok()) continue;
    lists.Take(row);
    for (size_t i = 0; i < row.size(); ++i) {
      if (!columns.has_values(i)) continue;
      AddValues(row[i], is_of_ids[i], report.columns[i], counts[i]);
    }
    for (size_t i = 0; i < uses.size(); ++i) {
      if (uses[i].numeric == nullptr || !index.contains(uses[i].column)) {
        continue;
      }
      AddTransformed(*uses[i].numeric, row[index[uses[i].column]],
                     transformed[i]);
    }
    char buffer[FieldValue::kMaxNumberBytes];
    for (const auto& [column, place] : labels) {
      for (const FieldValue& value : row[place]) {
        label_values_[column].Add(value.AsText(buffer));
      }
    }
  }
  for (LabelUse& use : LabelUses(job_, name, dataset)) {
    labels_.push_back(std::move(use));
  }
  for (size_t i = 0; i < counts.size(); ++i) {
    DescribeValues(counts[i], report.columns[i]);
  }
  if (name != "train") return;
  Normalize(uses, name, transformed);
  CountsByColumn by_column;
  for (size_t i = 0; i < counts.size(); ++i) {
    by_column.emplace(report.columns[i].name, std::move(counts[i]));
  }
  for (auto& warnings :
       {UseWarnings(job_.model(), uses),
        IdColumnWarnings(job_.model(), by_column), lists.Warnings()}) {
    found_.warnings.insert(found_.warnings.end(), warnings.begin(),
                           warnings.end());
  }
  found_.vocabularies = VocabularyChanges(job_.model(), by_column);
}

void DataCheck::Normalize(const std::vector<ColumnUse>& uses,
                          const std::string& name,
                          const std::vector<NumberStatistics>& transformed) {
  for (size_t i = 0; i < uses.size(); ++i) {
    const job::NumericColumn* const column = uses[i].numeric;
    const NumberStatistics& numbers = transformed[i];
    if (column == nullptr || numbers.count == 0) continue;
    if (numbers.min == numbers.max) {
      found_.warnings.push_back(absl::StrCat(
          uses[i].path, ": all values of column \"", column->name(), "\" of ",
          is_partial_ ? "a sample of the " : "the ", name, " data are ",
          numbers.min,
          numbers.is_exact()
              ? ": it tells the model nothing"
              : " as float64, which rounds integers beyond 2^53: read them as "
                "ids"));
      continue;
    }
    // The defaults of both are filled in: a column that has neither, or needs
    // neither, has 0 and 1.
    if (column->mean() != 0 || column->stddev() != 1) continue;
    const std::string path =
        uses[i].path.substr(0, uses[i].path.rfind(".name"));
    found_.normalizations.push_back({.path = path,
                                     .column = column->name(),
                                     .mean = {numbers.mean},
                                     .stddev = {numbers.stddev()}});
  }
}

absl::Status DataCheck::ReadExamples(const std::string& name,
                                     const job::Dataset& dataset,
                                     DatasetReport& report) {
  job::Dataset in_order = dataset;
  in_order.set_shuffle_buffer(0);
  in_order.clear_global_batch_size();
  in_order.set_batch_size(kBatch);
  // Without a loss's code its labels are not known.
  RETURN_IF_ERROR(CheckLossCode(graph_->outputs));
  ASSIGN_OR_RETURN(ModelInputs inputs, InputsOf(job_.model(), *graph_));
  // Training does not read what metrics do.
  if (name == "train") inputs.columns = LossColumns(graph_->outputs);
  ASSIGN_OR_RETURN(
      const std::unique_ptr<InputPipeline> pipeline,
      InputPipeline::Open(in_order, inputs,
                          {.data_dir = options_.data_dir,
                           .sample_bytes = options_.sample_bytes}));
  report.examples = pipeline->total_examples();
  report.is_sample = pipeline->is_sample();
  for (const OutputSpec& output : graph_->outputs) {
    report.labels.push_back(
        {.output = output.name, .classes = ClassesOf(output.loss.label)});
  }
  channels_.clear();
  while (report.looked_at < options_.max_examples) {
    ASSIGN_OR_RETURN(const Batch* const batch, pipeline->Next());
    if (batch == nullptr) break;
    AddBatch(*batch, report);
  }
  report.skipped = pipeline->skipped_records();
  if (name == "train") NormalizeImages(name, dataset);
  return absl::OkStatus();
}

void DataCheck::AddBatch(const Batch& batch, DatasetReport& report) {
  for (int64_t i = 0; i < batch.size; ++i) {
    if (static_cast<int64_t>(report.rows.size()) == kRows) break;
    report.rows.push_back(
        absl::StrCat(report.rows.size(), ": ", ExampleText(*graph_, batch, i)));
  }
  for (size_t i = 0; i < report.labels.size(); ++i) {
    AddLabels(batch, i, report.labels[i]);
  }
  AddPixels(batch);
  ids_.resize(graph_->tables.size());
  for (size_t table = 0; table < ids_.size(); ++table) {
    for (const size_t input : graph_->tables[table].id_inputs) {
      for (const uint64_t id : batch.ids[input].ids) {
        if (ids_[table].size() == kMaxIds) break;
        ids_[table][id] += report.name == "train";
      }
    }
  }
  report.looked_at += batch.size;
}

void DataCheck::AddLabels(const Batch& batch, size_t output,
                          LabelsReport& report) {
  const LabelForm& form = graph_->outputs[output].loss.label;
  const Target* const target =
      graph_->has_named_outputs() ? &batch.targets[output] : nullptr;
  const float* const labels =
      (target != nullptr ? target->labels : batch.labels).data();
  for (int64_t i = 0; i < batch.size; ++i) {
    if (target != nullptr && target->weights[i] == 0) continue;
    ++report.examples;
    const float* const label = labels + i * form.width;
    if (form.kind == LabelForm::Kind::kNumbers) {
      for (int64_t j = 0; j < form.width; ++j) report.numbers.Add(label[j]);
      if (report.classes.empty()) continue;
      if (label[0] == 0 || label[0] == 1) {
        ++report.classes[label[0] == 1].examples;
      } else {
        report.classes.clear();  // probabilities
      }
      continue;
    }
    const size_t number =
        form.kind == LabelForm::Kind::kClass
            ? static_cast<size_t>(label[0])
            : std::max_element(label, label + form.width) - label;
    if (number < report.classes.size()) ++report.classes[number].examples;
  }
}

void DataCheck::AddPixels(const Batch& batch) {
  // A sample is looked at for faults, not for what would normalize it.
  if (options_.sample_bytes > 0) return;
  if (!job_.train().has_idx() && !job_.train().has_cifar()) return;
  channels_.resize(job_.train().has_cifar() ? 3 : 1);
  const std::vector<float>& pixels = batch.dense.front().values;
  for (size_t i = 0; i < pixels.size(); ++i) {
    channels_[i % channels_.size()].Add(pixels[i]);
  }
}

void DataCheck::NormalizeImages(const std::string& name,
                                const job::Dataset& dataset) {
  if (channels_.empty() || !dataset.image().mean().empty() ||
      !dataset.image().stddev().empty()) {
    return;
  }
  Normalization images = {.path = dataset.has_image() ? name + ".image" : name,
                          .column = "image"};
  for (const NumberStatistics& channel : channels_) {
    if (channel.stddev() == 0) return;
    images.mean.push_back(channel.mean);
    images.stddev.push_back(channel.stddev());
  }
  found_.normalizations.push_back(std::move(images));
}

void DataCheck::WarnOfClasses(const DatasetReport& report) {
  if (report.looked_at == 0) return;
  for (size_t i = 0; i < report.labels.size(); ++i) {
    const LabelsReport& labels = report.labels[i];
    const std::string where = absl::StrCat(
        report.name,
        labels.output.empty() ? "" : absl::StrCat(", output ", labels.output),
        report.is_partial()
            ? absl::StrCat(", a sample of ", report.looked_at, " examples")
            : "");
    if (labels.examples == 0) {
      found_.warnings.push_back(absl::StrCat(
          where, ": no example counts: each lacks a label or has the mask 0"));
      continue;
    }
    const std::string warning =
        UnseenClasses(graph_->outputs[i].loss.label, labels);
    if (!warning.empty()) {
      found_.warnings.push_back(absl::StrCat(where, ": ", warning));
    }
  }
}

std::vector<int64_t> DataCheck::MostOfAnId() const {
  std::vector<int64_t> most;
  for (const auto& ids : ids_) {
    int64_t of_table = ids.size() < kMaxIds ? 0 : INT64_MAX;
    for (const auto& [id, count] : ids) of_table = std::max(of_table, count);
    most.push_back(of_table);
  }
  return most;
}

std::vector<int64_t> DataCheck::DistinctIds() const {
  std::vector<int64_t> counts;
  for (const auto& ids : ids_)
    counts.push_back(static_cast<int64_t>(ids.size()));
  if (graph_ != nullptr) counts.resize(graph_->tables.size());
  return counts;
}

}  // namespace parasol
