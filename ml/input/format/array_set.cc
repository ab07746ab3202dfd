#include "ml/input/format/array_set.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/did_you_mean.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "ml/input/feature/value.h"
#include "ml/input/file/array_files.h"
#include "ml/input/file/available_memory.h"
#include "ml/input/file/set_memory.h"
#include "ml/input/format/column_examples.h"
#include "ml/input/format/whole_file.h"
#include "ml/input/record/fixed_format.h"
#include "ml/input/record/record_reader.h"
#include "ml/input/record/records.h"

namespace parasol {
namespace {

// An array, in memory or on the disk.
struct ReadArray {
  ExampleArray array;
  std::unique_ptr<const Records> records = nullptr;  // null: in memory
};

// Reads examples of an array, wherever they are. For one thread.
class ArrayReader {
 public:
  explicit ArrayReader(const ReadArray& read) : array_(read.array) {
    if (read.records != nullptr) reader_.emplace(*read.records);
  }

  // Replaces `values` by an example's. Errors as for RecordReader::Read().
  absl::Status Read(int64_t example, std::vector<FieldValue>& values) {
    if (!reader_.has_value()) {
      array_.Read(example, values);
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const absl::string_view bytes, reader_->Read(example));
    values.clear();
    array_.append(bytes.data(), array_.values, values);
    return absl::OkStatus();
  }

  void Prefetch(int64_t example) {
    if (reader_.has_value()) return reader_->Prefetch(example);
    __builtin_prefetch(array_.bytes.data() + example * array_.example_bytes);
  }

 private:
  const ExampleArray& array_;
  std::optional<RecordReader> reader_;  // nullopt: in memory
};

std::vector<ArrayReader> ReadersOf(const std::vector<ReadArray>& arrays) {
  return {arrays.begin(), arrays.end()};
}

// The arrays of a data set that have the same number of examples.
class SameSized {
 public:
  // `named`: names of arrays, of which the first that is there has the number
  // of examples; the first array of all has it if none is.
  SameSized(const ArrayFiles& files, const std::vector<std::string>& named)
      : files_(files), reference_(&files.arrays().front()) {
    for (const std::string& name : named) {
      const ListedArray* const found = files.Find(name);
      if (found == nullptr) continue;
      reference_ = found;
      break;
    }
    for (const ListedArray& array : files.arrays()) {
      if (array.examples == reference_->examples && array.fault.empty()) {
        names_.push_back(array.name);
      }
    }
  }

  const std::vector<std::string>& names() const { return names_; }
  int64_t examples() const { return reference_->examples; }
  const std::vector<int64_t>& file_starts() const {
    return reference_->file_starts;
  }

  // Returns OK unless the files have an array of this name that can't be read,
  // or not together with the others.
  absl::Status Check(const std::string& name) const {
    const ListedArray* const array = files_.Find(name);
    if (array == nullptr) return absl::OkStatus();
    const std::string what =
        absl::StrCat(files_.first(), ": array \"", name, "\" ");
    if (!array->fault.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(what, array->fault));
    }
    if (array->examples == examples()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(what, "has ", array->examples, " examples, and \"",
                     reference_->name, "\" ", examples()));
  }

  // Returns OK if there is such an array, which `field` of the job names.
  absl::Status Require(const std::string& name, absl::string_view field) const {
    RETURN_IF_ERROR(Check(name));
    if (files_.Find(name) != nullptr) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": there is no array \"", name, "\", but ",
                     ShownList(names_), DidYouMean(name, names_)));
  }

  // Number of examples of a sample of so many bytes; 0: of all.
  int64_t SampleOf(const std::vector<std::string>& names,
                   int64_t sample_bytes) const {
    if (sample_bytes == 0) return examples();
    size_t each = 0;
    for (const std::string& name : names) {
      each += files_.Find(name)->example_bytes;
    }
    const auto fit =
        sample_bytes / static_cast<int64_t>(std::max<size_t>(each, 1));
    return std::min(examples(), std::max<int64_t>(1, fit));
  }

  // Reads these arrays into memory; if they take too much of it, and all
  // examples are wanted, they stay on the disk.
  absl::StatusOr<std::vector<ReadArray>> Read(
      const std::vector<std::string>& names, int64_t count,
      const SetMemory& memory) const {
    size_t bytes = 0;
    for (const std::string& name : names) {
      bytes += count * files_.Find(name)->example_bytes;
    }
    std::vector<ReadArray> all;
    if (count < examples() || bytes <= MostInMemory(memory)) {
      RETURN_IF_ERROR(
          CheckFitsMemory(files_.first(), bytes, AvailableMemory()));
      ASSIGN_OR_RETURN(std::vector<ExampleArray> arrays,
                       files_.Read(names, count));
      for (ExampleArray& array : arrays) {
        all.push_back({.array = std::move(array)});
      }
      return all;
    }
    ASSIGN_OR_RETURN(std::vector<ExampleArray> arrays, files_.Store(names));
    SetMemory share = memory;
    share.cache_bytes /= arrays.size();
    share.whole = MostInMemory(memory) / arrays.size();
    for (ExampleArray& array : arrays) {
      auto records = std::make_unique<Records>(
          Records::Content::kBinary,
          std::make_shared<FixedFormat>(array.example_bytes), share);
      for (StoredFile& file : array.stored) {
        RETURN_IF_ERROR(records->AddStored(std::move(file)));
      }
      all.push_back({.array = std::move(array), .records = std::move(records)});
    }
    return all;
  }

 private:
  const ArrayFiles& files_;
  const ListedArray* reference_;
  std::vector<std::string> names_;
};

std::vector<int64_t> StartsOf(std::vector<int64_t> starts, int64_t examples) {
  for (int64_t& start : starts) start = std::min(start, examples);
  return starts;
}

// The arrays that inputs name; an input without columns by its own name.
std::vector<std::string> NamesOfInputs(
    const std::vector<job::ModelInput>& inputs) {
  std::vector<std::string> names;
  for (const job::ModelInput& input : inputs) {
    for (const job::NumericColumn& column : input.dense().column()) {
      names.push_back(column.name());
    }
    for (const job::IdColumn& column : input.ids().column()) {
      names.insert(names.end(), column.name().begin(), column.name().end());
    }
    if (input.dense().column().empty() && input.ids().column().empty()) {
      names.push_back(input.name());
    }
  }
  return names;
}

// Names in whose order the number of examples is looked for.
std::vector<std::string> NamedArrays(const job::ArrayDataset& dataset,
                                     const ModelInputs& inputs) {
  std::vector<std::string> names = {dataset.label()};
  for (const std::vector<std::string>& more :
       {TargetColumns(inputs.targets), NamesOfInputs(inputs.inputs)}) {
    names.insert(names.end(), more.begin(), more.end());
  }
  return names;
}

// Checks the arrays of labels and weights, and returns all columns.
absl::StatusOr<Columns> ColumnsFor(const job::ArrayDataset& dataset,
                                   const SetOptions& options,
                                   const SameSized& arrays) {
  const ModelInputs& inputs = options.inputs;
  Columns columns = {.names = arrays.names(),
                     .labels_and_weights = TargetColumns(inputs.targets)};
  for (const std::string& name : {dataset.label(), dataset.weight()}) {
    if (!name.empty()) columns.labels_and_weights.push_back(name);
  }
  columns.labels_and_weights.insert(columns.labels_and_weights.end(),
                                    options.label_columns.begin(),
                                    options.label_columns.end());
  for (const std::string& name : inputs.kept) {
    RETURN_IF_ERROR(arrays.Require(name, "column to keep"));
  }
  for (const std::string& name : NamesOfInputs(inputs.inputs)) {
    RETURN_IF_ERROR(arrays.Check(name));
  }
  if (options.without_labels) return columns;
  if (inputs.has_one_label()) {
    RETURN_IF_ERROR(arrays.Require(dataset.label(), "array.label"));
  }
  if (dataset.has_weight()) {
    RETURN_IF_ERROR(arrays.Require(dataset.weight(), "array.weight"));
  }
  for (const std::string& name : TargetColumns(inputs.targets)) {
    RETURN_IF_ERROR(arrays.Require(name, "model.output"));
  }
  for (const ExampleColumn& column : inputs.columns) {
    RETURN_IF_ERROR(arrays.Require(column.name, "a loss or a metric"));
  }
  return columns;
}

// Checks that each dense input has as many numbers as the examples of its
// arrays together.
absl::Status CheckShapes(const std::vector<job::ModelInput>& inputs,
                         const Columns& columns, const ArrayFiles& files) {
  for (const job::ModelInput& input : inputs) {
    if (!input.has_dense()) continue;
    std::vector<std::string> names;
    for (const job::NumericColumn& column : input.dense().column()) {
      names.push_back(column.name());
    }
    if (names.empty()) {
      ASSIGN_OR_RETURN(names.emplace_back(), OwnColumn(input, columns));
    }
    int64_t wanted = 1;
    for (const int64_t size : input.dense().shape()) wanted *= size;
    wanted /= static_cast<int64_t>(names.size());
    for (const std::string& name : names) {
      const ListedArray& array = *files.Find(name);
      int64_t values = 1;
      for (const int64_t size : array.shape) values *= size;
      if (values == wanted) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "model input ", input.name(), " is ",
          ShapeText(input.dense().shape()), " of ", names.size(),
          names.size() == 1 ? " array" : " arrays", ", but an example of \"",
          name, "\" is ", ShapeText(array.shape)));
    }
  }
  return absl::OkStatus();
}

struct ArraySet final : public ExampleSet {
  const std::vector<int64_t>& file_starts() const override { return starts; }
  bool is_sample() const override { return is_cut; }
  std::unique_ptr<ExampleDecoder> NewDecoder() const override;

  ArraySet(ColumnExamples columns, std::string first_path)
      : path(std::move(first_path)), examples(std::move(columns)) {}

  const std::string path;  // of the first file, for messages
  const ColumnExamples examples;
  std::vector<int64_t> starts;
  bool is_cut = false;
  std::vector<ReadArray> arrays;  // each that is read, once
  // Places in `arrays` of the examples' columns, of label and of weight.
  std::vector<size_t> columns;
  size_t label = 0;
  size_t weight = 0;
};

class ArrayDecoder final : public ExampleDecoder {
 public:
  explicit ArrayDecoder(const ArraySet& set)
      : set_(set), arrays_(ReadersOf(set.arrays)), row_(set.columns.size()) {}

  absl::Status Append(int64_t example, uint64_t /*random*/,
                      Batch& batch) override {
    for (size_t i = 0; i < row_.size(); ++i) {
      RETURN_IF_ERROR(arrays_[set_.columns[i]].Read(example, row_[i]));
    }
    if (set_.examples.reads_label()) {
      RETURN_IF_ERROR(arrays_[set_.label].Read(example, label_));
    }
    if (set_.examples.reads_weight()) {
      RETURN_IF_ERROR(arrays_[set_.weight].Read(example, weight_));
    }
    RETURN_IF_ERROR(set_.examples.Append(row_, label_, weight_, batch))
        << set_.path << ", example " << example;
    return absl::OkStatus();
  }

  void Prefetch(int64_t example) override {
    for (ArrayReader& array : arrays_) array.Prefetch(example);
  }

 private:
  const ArraySet& set_;
  std::vector<ArrayReader> arrays_;
  ColumnValues row_;
  std::vector<FieldValue> label_;
  std::vector<FieldValue> weight_;
};

std::unique_ptr<ExampleDecoder> ArraySet::NewDecoder() const {
  return std::make_unique<ArrayDecoder>(*this);
}

class ArrayColumns final : public RawColumns {
 public:
  ArrayColumns(std::vector<std::string> names, std::vector<ReadArray> arrays,
               int64_t size, bool is_cut)
      : RawColumns(std::move(names)),
        arrays_(std::move(arrays)),
        readers_(ReadersOf(arrays_)),
        size_(size),
        is_cut_(is_cut) {}

  int64_t size() const override { return size_; }
  bool is_sample() const override { return is_cut_; }
  absl::Status Read(int64_t record, ColumnValues& row) override {
    row.resize(readers_.size());
    for (size_t i = 0; i < readers_.size(); ++i) {
      RETURN_IF_ERROR(readers_[i].Read(record, row[i]));
    }
    return absl::OkStatus();
  }

 private:
  const std::vector<ReadArray> arrays_;  // in the order of names()
  std::vector<ArrayReader> readers_;
  const int64_t size_;
  const bool is_cut_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const ExampleSet>> OpenArraySet(
    const job::ArrayDataset& dataset, const SetOptions& options) {
  ASSIGN_OR_RETURN(const ArrayFiles files,
                   ArrayFiles::Open(dataset, options.data_dir));
  const SameSized arrays(files, NamedArrays(dataset, options.inputs));
  ASSIGN_OR_RETURN(const Columns columns, ColumnsFor(dataset, options, arrays));
  ASSIGN_OR_RETURN(ColumnFeatures features,
                   ColumnFeatures::Create(options.inputs.inputs, columns));
  RETURN_IF_ERROR(CheckShapes(options.inputs.inputs, columns, files));
  auto set = std::make_shared<ArraySet>(
      ColumnExamples(std::move(features), options, dataset.has_weight()),
      files.first());

  std::vector<std::string> names;
  absl::flat_hash_map<std::string, size_t> places;
  const auto place_of = [&](const std::string& name) {
    const auto [place, is_new] = places.emplace(name, names.size());
    if (is_new) names.push_back(name);
    return place->second;
  };
  for (const std::string& column : set->examples.columns()) {
    set->columns.push_back(place_of(column));
  }
  if (set->examples.reads_label()) set->label = place_of(dataset.label());
  if (set->examples.reads_weight()) set->weight = place_of(dataset.weight());

  const int64_t count = arrays.SampleOf(names, options.sample_bytes);
  ASSIGN_OR_RETURN(set->arrays, arrays.Read(names, count, options.memory));
  set->starts = StartsOf(arrays.file_starts(), count);
  set->is_cut = count < arrays.examples();
  return set;
}

absl::StatusOr<Columns> ReadArrayColumns(const job::ArrayDataset& dataset,
                                         const std::string& data_dir) {
  ASSIGN_OR_RETURN(const ArrayFiles files, ArrayFiles::Open(dataset, data_dir));
  const SameSized arrays(files, {dataset.label()});
  Columns columns = {.names = arrays.names(), .labels_and_weights = {}};
  for (const std::string& name : {dataset.label(), dataset.weight()}) {
    if (!name.empty()) columns.labels_and_weights.push_back(name);
  }
  return columns;
}

absl::StatusOr<std::unique_ptr<RawColumns>> OpenArrayColumns(
    const job::ArrayDataset& dataset, const std::string& data_dir,
    const std::vector<std::string>& wanted, int64_t sample_bytes) {
  ASSIGN_OR_RETURN(const ArrayFiles files, ArrayFiles::Open(dataset, data_dir));
  std::vector<std::string> named = {dataset.label()};
  named.insert(named.end(), wanted.begin(), wanted.end());
  const SameSized arrays(files, named);
  for (const std::string& name : named) RETURN_IF_ERROR(arrays.Check(name));
  const int64_t count = arrays.SampleOf(arrays.names(), sample_bytes);
  ASSIGN_OR_RETURN(std::vector<ReadArray> read,
                   arrays.Read(arrays.names(), count, {}));
  return std::make_unique<ArrayColumns>(arrays.names(), std::move(read), count,
                                        count < arrays.examples());
}

}  // namespace parasol
