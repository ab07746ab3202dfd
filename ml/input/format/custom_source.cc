#include "ml/input/format/custom_source.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/did_you_mean.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "ml/custom/code_registry.h"
#include "ml/input/feature/column_features.h"
#include "ml/input/file/file_set.h"
#include "ml/input/file/local_files.h"
#include "ml/input/format/column_examples.h"
#include "ml/input/format/label_rule.h"
#include "ml/input/format/target_reader.h"

namespace parasol {
namespace {

using Source = std::shared_ptr<const ExampleSource>;

CodeRegistry<ExampleSourceFactory>& Registry() {
  static auto* const registry = new CodeRegistry<ExampleSourceFactory>(
      "data source", "worker, evaluator and parasol");
  return *registry;
}

// A source gives the numbers of its files, and is a user's code.
absl::Status CheckStarts(const std::string& type,
                         const std::vector<int64_t>& starts) {
  if (starts.size() >= 2 && starts.front() == 0 &&
      std::is_sorted(starts.begin(), starts.end())) {
    return absl::OkStatus();
  }
  return absl::InternalError(
      absl::StrCat("the data source \"", type, "\" has file_starts() of {",
                   absl::StrJoin(starts, ", "),
                   "}; they must begin with 0, not fall, and end with the "
                   "number of examples"));
}

absl::StatusOr<Source> Open(const job::CustomDataset& custom,
                            const std::string& data_dir, bool skip_corrupt) {
  const ExampleSourceFactory* const factory = Registry().Find(custom.type());
  if (factory == nullptr) {
    return absl::FailedPreconditionError(Registry().Lacks(custom.type()));
  }
  SourceOptions options = {
      .files = {}, .data_dir = data_dir, .skip_corrupt = skip_corrupt};
  if (!custom.file().empty()) {
    const std::vector<std::string> patterns(custom.file().begin(),
                                            custom.file().end());
    ASSIGN_OR_RETURN(const FoundFiles found,
                     FindFiles(data_dir, patterns, "custom.file"));
    RETURN_IF_ERROR(BringFiles(found.paths));
    for (const std::string& path : found.paths) {
      ASSIGN_OR_RETURN(options.files.emplace_back(), BroughtFile(path));
    }
  }
  ASSIGN_OR_RETURN(std::unique_ptr<const ExampleSource> source,
                   (*factory)(custom, options),
                   _ << "custom \"" << custom.type() << "\"");
  CHECK(source != nullptr) << "custom data source " << custom.type();
  RETURN_IF_ERROR(CheckStarts(custom.type(), source->file_starts()));
  return Source(std::move(source));
}

absl::Status CheckColumn(const std::vector<std::string>& columns,
                         const std::string& name, absl::string_view field) {
  if (std::find(columns.begin(), columns.end(), name) != columns.end()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": the data source has no column \"", name, "\"",
                   DidYouMean(name, columns)));
}

struct CustomSet final : public ExampleSet {
  CustomSet(Source opened, const std::string& type_of_source,
            ColumnFeatures column_features, const SetOptions& options)
      : type(type_of_source),
        source(std::move(opened)),
        examples(std::move(column_features), options,
                 /*has_weights=*/!source->weight().empty()) {
    absl::flat_hash_map<std::string, size_t> places;
    for (size_t i = 0; i < source->columns().size(); ++i) {
      places.emplace(source->columns()[i], i);
    }
    for (const std::string& column : examples.columns()) {
      column_places.push_back(places.at(column));
    }
    if (examples.reads_label()) label_place = places.at(source->label());
    if (examples.reads_weight()) weight_place = places.at(source->weight());
  }

  const std::vector<int64_t>& file_starts() const override {
    return source->file_starts();
  }
  std::unique_ptr<ExampleDecoder> NewDecoder() const override;

  const std::string type;
  const Source source;
  const ColumnExamples examples;
  // Places of the examples' columns, of the label and of the weight among the
  // source's columns.
  std::vector<size_t> column_places;
  size_t label_place = 0;
  size_t weight_place = 0;
};

class CustomDecoder final : public ExampleDecoder {
 public:
  explicit CustomDecoder(const CustomSet& set)
      : set_(set),
        reader_(set.source->NewReader()),
        all_(set.source->columns().size()),
        row_(set.examples.columns().size()) {}

  absl::Status Append(int64_t example, uint64_t /*random*/,
                      Batch& batch) override {
    for (std::vector<FieldValue>& values : all_) values.clear();
    RETURN_IF_ERROR(reader_->Read(example, all_));
    CHECK_EQ(all_.size(), set_.source->columns().size())
        << "a data source has changed the number of columns";
    RETURN_IF_ERROR(AppendRead(batch))
        << "custom \"" << set_.type << "\", example " << example;
    return absl::OkStatus();
  }

 private:
  absl::Status AppendRead(Batch& batch);

  const CustomSet& set_;
  const std::unique_ptr<ExampleSource::Reader> reader_;
  ColumnValues all_;  // of all of the source's columns
  ColumnValues row_;  // of those that are read
};

absl::Status CustomDecoder::AppendRead(Batch& batch) {
  for (size_t i = 0; i < row_.size(); ++i) {
    row_[i] = all_[set_.column_places[i]];
  }
  return set_.examples.Append(row_, all_[set_.label_place],
                              all_[set_.weight_place], batch);
}

std::unique_ptr<ExampleDecoder> CustomSet::NewDecoder() const {
  return std::make_unique<CustomDecoder>(*this);
}

class CustomColumns final : public RawColumns {
 public:
  explicit CustomColumns(Source source)
      : RawColumns(source->columns(), source->label(), source->weight()),
        source_(std::move(source)),
        reader_(source_->NewReader()) {}

  int64_t size() const override { return source_->file_starts().back(); }
  absl::Status Read(int64_t record, ColumnValues& row) override {
    row.resize(names().size());
    for (std::vector<FieldValue>& values : row) values.clear();
    return reader_->Read(record, row);
  }

 private:
  const Source source_;
  const std::unique_ptr<ExampleSource::Reader> reader_;
};

// Checks the columns of labels and weights, and returns all.
absl::StatusOr<Columns> ColumnsOf(const ExampleSource& source,
                                  const std::string& type,
                                  const SetOptions& options) {
  const std::vector<TargetInput>& targets = options.inputs.targets;
  Columns columns = {.names = source.columns(),
                     .labels_and_weights = TargetColumns(targets)};
  if (targets.empty()) columns.labels_and_weights.push_back(source.label());
  if (!source.weight().empty()) {
    columns.labels_and_weights.push_back(source.weight());
  }
  columns.labels_and_weights.insert(columns.labels_and_weights.end(),
                                    options.label_columns.begin(),
                                    options.label_columns.end());
  for (const std::string& column : options.inputs.kept) {
    RETURN_IF_ERROR(CheckColumn(columns.names, column, "column to keep"));
  }
  if (options.without_labels) return columns;
  for (const std::string& column : TargetColumns(targets)) {
    RETURN_IF_ERROR(CheckColumn(columns.names, column, "model.output"));
  }
  for (const ExampleColumn& column : options.inputs.columns) {
    RETURN_IF_ERROR(
        CheckColumn(columns.names, column.name, "a loss or a metric"));
  }
  if (options.inputs.has_one_label()) {
    RETURN_IF_ERROR(CheckColumn(
        columns.names, source.label(),
        absl::StrCat("the label of the data source \"", type, "\"")));
  }
  if (!source.weight().empty()) {
    RETURN_IF_ERROR(CheckColumn(
        columns.names, source.weight(),
        absl::StrCat("the weight of the data source \"", type, "\"")));
  }
  return columns;
}

}  // namespace

ExampleSourceRegistration::ExampleSourceRegistration(
    absl::string_view type, ExampleSourceFactory factory) {
  Registry().Add(type, std::move(factory));
}

absl::StatusOr<std::shared_ptr<const ExampleSet>> OpenCustomSet(
    const job::CustomDataset& custom, const SetOptions& options) {
  ASSIGN_OR_RETURN(const Source source,
                   Open(custom, options.data_dir, options.skip_corrupt));
  ASSIGN_OR_RETURN(const Columns columns,
                   ColumnsOf(*source, custom.type(), options));
  ASSIGN_OR_RETURN(ColumnFeatures features,
                   ColumnFeatures::Create(options.inputs.inputs, columns));
  return std::make_shared<CustomSet>(source, custom.type(), std::move(features),
                                     options);
}

absl::StatusOr<Columns> ReadCustomColumns(const job::CustomDataset& custom,
                                          const std::string& data_dir) {
  ASSIGN_OR_RETURN(const Source source,
                   Open(custom, data_dir, /*skip_corrupt=*/true));
  Columns columns = {.names = source->columns(), .labels_and_weights = {}};
  for (const std::string& column : {source->label(), source->weight()}) {
    if (!column.empty()) columns.labels_and_weights.push_back(column);
  }
  return columns;
}

absl::StatusOr<std::unique_ptr<RawColumns>> OpenCustomColumns(
    const job::CustomDataset& custom, const std::string& data_dir) {
  ASSIGN_OR_RETURN(Source source,
                   Open(custom, data_dir, /*skip_corrupt=*/true));
  return std::make_unique<CustomColumns>(std::move(source));
}

}  // namespace parasol
