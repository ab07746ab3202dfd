#include "ml/input/format/libsvm_set.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "ml/input/feature/meaningless_label.h"
#include "ml/input/feature/number.h"
#include "ml/input/format/data_files.h"
#include "ml/input/format/read_records.h"
#include "ml/input/record/line_format.h"
#include "ml/input/record/record_reader.h"
#include "ml/input/record/records.h"

namespace parasol {
namespace {

constexpr absl::string_view kFeaturesColumn = "features";
bool IsLibsvmBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

struct LibsvmSet final : public ExampleSet {
  LibsvmSet(Records read, const job::LibsvmDataset& spec,
            const SetOptions& options)
      : records(std::move(read)),
        starts(records.file_starts()),
        rules(spec, options.inputs),
        without_labels(options.without_labels) {}

  const std::vector<int64_t>& file_starts() const override { return starts; }
  bool is_sample() const override { return records.is_sample(); }
  std::unique_ptr<ExampleDecoder> NewDecoder() const override;

  const Records records;
  const std::vector<int64_t> starts;
  const LibsvmRules rules;
  const bool without_labels;
};

// Makes features of lines; keeps its memory from line to line.
class LineReader {
 public:
  explicit LineReader(const LibsvmRules& rules) : rules_(rules) {}

  // Appends the line's label and features.
  absl::Status Append(absl::string_view line, Batch& batch) {
    absl::string_view rest = line.substr(0, line.find('#'));
    RETURN_IF_ERROR(TakeLabel(rest, batch));
    return AppendFeatures(line, rest, batch);
  }

  // Appends the line's features; a label that it may begin with is not read.
  absl::Status AppendWithoutLabel(absl::string_view line, Batch& batch) {
    absl::string_view rest = line.substr(0, line.find('#'));
    absl::string_view behind_label = rest;
    TakeToken(behind_label);
    if (at_.find(':') == absl::string_view::npos) rest = behind_label;
    AppendMeaninglessLabels(rules_.inputs, batch);
    return AppendFeatures(line, rest, batch);
  }

  // Appends the features of `rest`, a part of `line` without a label.
  absl::Status AppendFeatures(absl::string_view line, absl::string_view rest,
                              Batch& batch) {
    features_.clear();
    while (TakeToken(rest)) RETURN_IF_ERROR(ParseFeature());
    at_ = line;
    size_t dense = 0;
    size_t ids = 0;
    for (const job::ModelInput& input : rules_.inputs.inputs) {
      if (input.has_ids()) {
        RETURN_IF_ERROR(AppendIds(batch.ids[ids++]));
      } else {
        RETURN_IF_ERROR(AppendDense(input.dense(), batch.dense[dense++]));
      }
    }
    return absl::OkStatus();
  }

  // The text that the last error is about: a part of the line.
  absl::string_view at() const { return at_; }

 private:
  struct Feature {
    uint64_t index;  // the 64 bits of the index, which may be an id
    float value;
  };

  // Puts the next token into at_; false: there is none.
  bool TakeToken(absl::string_view& rest) {
    size_t start = 0;
    while (start < rest.size() && IsLibsvmBlank(rest[start])) ++start;
    size_t end = start;
    while (end < rest.size() && !IsLibsvmBlank(rest[end])) ++end;
    at_ = rest.substr(start, end - start);
    rest.remove_prefix(end);
    return !at_.empty();
  }

  absl::Status TakeLabel(absl::string_view& rest, Batch& batch) {
    TakeToken(rest);
    std::optional<double> label = ParseNumber(at_);
    if (!label.has_value()) return Refused("label", "is not a number");
    if (*label == -1 && !rules_.keep_negative_labels) label = 0;
    return AppendLabel(rules_.inputs.label, *label, batch.labels);
  }

  absl::Status ParseFeature() {
    const size_t colon = at_.find(':');
    if (colon == absl::string_view::npos) {
      return Refused("feature", "is not index:value");
    }
    const absl::string_view number = at_.substr(0, colon);
    const std::optional<uint64_t> index = ParseId(number);
    const std::optional<double> value = ParseNumber(at_.substr(colon + 1));
    if (!index.has_value()) {
      return Refused("feature", IsInteger(number)
                                    ? "has an index beyond 64 bits"
                                    : "has no index that is an integer");
    }
    if (rules_.has_dense && IsBelowFirst(number, *index)) {
      return Refused("feature",
                     absl::StrCat("has no index from ", rules_.first_index));
    }
    if (!value.has_value() || !std::isfinite(static_cast<float>(*value))) {
      return Refused("feature", "has a value that is not a finite float32");
    }
    features_.push_back({*index, static_cast<float>(*value)});
    return absl::OkStatus();
  }

  // Elements have numbers from first_index; ids are any 64 bits.
  bool IsBelowFirst(absl::string_view number, uint64_t index) const {
    return number.front() == '-' ||
           index < static_cast<uint64_t>(rules_.first_index);
  }

  absl::Status AppendDense(const job::DenseInput& dense,
                           DenseFeature& feature) const {
    int64_t elements = 1;
    for (const int64_t axis : dense.shape()) elements *= axis;
    const size_t start = feature.values.size();
    feature.values.resize(start + elements);
    float* values = feature.values.data() + start;
    for (const Feature& f : features_) {
      const uint64_t element = f.index - rules_.first_index;
      if (element >= static_cast<uint64_t>(elements)) {
        return absl::DataLossError(
            absl::StrCat("index ", f.index, " is beyond ", elements,
                         " features from ", rules_.first_index));
      }
      values[element] += f.value;
      if (std::isfinite(values[element])) continue;
      return absl::DataLossError(absl::StrCat(
          "the values of index ", f.index, " add up to more than a float32"));
    }
    return absl::OkStatus();
  }

  absl::Status AppendIds(IdFeature& feature) const {
    for (const Feature& f : features_) {
      feature.ids.push_back(f.index);
      feature.weights.push_back(f.value);
    }
    if (feature.ids.size() > std::numeric_limits<int32_t>::max()) {
      return absl::DataLossError("more than 2^31 - 1 ids in a batch");
    }
    feature.offsets.push_back(static_cast<int32_t>(feature.ids.size()));
    return absl::OkStatus();
  }

  absl::Status Refused(absl::string_view part, absl::string_view what) const {
    return absl::DataLossError(
        absl::StrCat(part, " \"", ShownText(at_, 40), "\" ", what));
  }

  const LibsvmRules& rules_;
  absl::string_view at_;  // the token that is being read
  std::vector<Feature> features_;
};

class LibsvmDecoder final : public ExampleDecoder {
 public:
  explicit LibsvmDecoder(const LibsvmSet& set)
      : set_(set), records_(set.records), reader_(set.rules) {}

  absl::Status Append(int64_t example, uint64_t /*random*/,
                      Batch& batch) override {
    ASSIGN_OR_RETURN(const absl::string_view line, records_.Read(example));
    const absl::Status status = set_.without_labels
                                    ? reader_.AppendWithoutLabel(line, batch)
                                    : reader_.Append(line, batch);
    if (status.ok()) return status;
    const size_t inside = reader_.at().data() - line.data();
    return records_.Corrupt(example, inside, status.message());
  }

  void Prefetch(int64_t example) override { records_.Prefetch(example); }

 private:
  const LibsvmSet& set_;
  RecordReader records_;
  LineReader reader_;
};

// Returns OK unless labels of two classes would become one.
absl::Status CheckNegativeLabels(const Records& records) {
  std::optional<int64_t> negative;  // records
  std::optional<int64_t> zero;
  RecordReader reader(records);
  for (int64_t i = 0; i < records.size(); ++i) {
    ASSIGN_OR_RETURN(const absl::string_view line, reader.Read(i));
    const auto end = std::find_if(line.begin(), line.end(), [](char c) {
      return IsLibsvmBlank(c) || c == '#';
    });
    const auto label = ParseNumber(line.substr(0, end - line.begin()));
    if (label == -1) negative = negative.value_or(i);
    if (label == 0) zero = zero.value_or(i);
    if (!negative.has_value() || !zero.has_value()) continue;
    return reader.Corrupt(
        i, 0,
        absl::StrCat("label ", *label, ", and others are ",
                     *label == 0 ? -1 : 0,
                     ": -1 is read as 0, which would make one class of two; "
                     "write classes as 0, 1, …, or set "
                     "libsvm.keep_negative_labels: true for a loss that takes "
                     "negative numbers"));
  }
  return absl::OkStatus();
}

std::unique_ptr<ExampleDecoder> LibsvmSet::NewDecoder() const {
  return std::make_unique<LibsvmDecoder>(*this);
}

}  // namespace

LibsvmRules::LibsvmRules(const job::LibsvmDataset& spec, ModelInputs wanted)
    : first_index(spec.has_first_index() ? spec.first_index() : 1),
      keep_negative_labels(spec.keep_negative_labels()),
      inputs(std::move(wanted)),
      has_dense(std::any_of(
          inputs.inputs.begin(), inputs.inputs.end(),
          [](const job::ModelInput& input) { return input.has_dense(); })) {}

absl::Status AppendLibsvmFeatures(const LibsvmRules& rules,
                                  absl::string_view features, Batch& batch) {
  return LineReader(rules).AppendFeatures(features, features, batch);
}

absl::Status CheckLibsvmInputs(const ModelInputs& inputs) {
  for (const job::ModelInput& input : inputs.inputs) {
    if (!ReadsWhole(input, kFeaturesColumn)) {
      return absl::InvalidArgumentError(
          absl::StrCat("model input ", input.name(),
                       " names columns; libsvm has one, features, which is "
                       "read as a whole"));
    }
    if (input.ids().has_sequence()) {
      return absl::InvalidArgumentError(
          absl::StrCat("model input ", input.name(),
                       " is a sequence, and the features of libsvm have no "
                       "order: use csv or tfrecord"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const ExampleSet>> OpenLibsvmSet(
    const job::LibsvmDataset& libsvm, const SetOptions& options) {
  RETURN_IF_ERROR(CheckLibsvmInputs(options.inputs));
  RETURN_IF_ERROR(CheckNothingKept(options.inputs, "libsvm"));
  if (!options.without_labels) {
    RETURN_IF_ERROR(CheckOneLabel(options.inputs, "libsvm"));
  }
  const std::vector<std::string> patterns(libsvm.file().begin(),
                                          libsvm.file().end());
  ASSIGN_OR_RETURN(DataFiles files,
                   DataFiles::Find(options.data_dir, patterns, "libsvm.file",
                                   options.sample_bytes));
  ASSIGN_OR_RETURN(
      Records records,
      ReadRecords(std::move(files), std::make_shared<LineFormat>('#'),
                  Records::Content::kText, options.memory));
  if (!options.without_labels && !libsvm.keep_negative_labels()) {
    RETURN_IF_ERROR(CheckNegativeLabels(records));
  }
  return std::make_shared<LibsvmSet>(std::move(records), libsvm, options);
}

}  // namespace parasol
