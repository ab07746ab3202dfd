#include "cluster/job/validate_dataset.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/did_you_mean.h"
#include "base/field_checks.h"
#include "base/status_macros.h"
#include "ml/loss/loss_kinds.h"
#include "ml/metric/metric_spec.h"

namespace parasol {
namespace {

constexpr int64_t kMaxShuffleBuffer = int64_t{1} << 32;
constexpr int64_t kMaxPrefetchBatches = 1024;
constexpr int64_t kMaxDecodeThreads = 256;
constexpr int64_t kMaxPatterns = 65536;
constexpr int64_t kMaxFileColumns = 65536;
constexpr int64_t kMaxSkippedLines = 1 << 20;
constexpr int64_t kMaxCropPadding = 1024;
constexpr size_t kMaxDelimiterBytes = 16;

// What the formats of one or more files have in common.
template <typename Format>
absl::Status ValidateFiles(const std::string& path, const Format& format) {
  if (format.file().empty()) return Missing(absl::StrCat(path, ".file"));
  RETURN_IF_ERROR(RequireInRange(absl::StrCat(path, ".file"),
                                 format.file_size(), 1, kMaxPatterns));
  for (int i = 0; i < format.file_size(); ++i) {
    RETURN_IF_ERROR(
        RequirePath(absl::StrCat(path, ".file[", i, "]"), format.file(i)));
  }
  return absl::OkStatus();
}

absl::Status ValidateDelimiter(const std::string& path,
                               const std::string& delimiter) {
  const bool is_allowed =
      !delimiter.empty() && delimiter.size() <= kMaxDelimiterBytes &&
      delimiter.find_first_of("\"\r\n") == std::string::npos;
  if (is_allowed) return absl::OkStatus();
  return Fault(path, absl::StrCat("\"", absl::CHexEscape(delimiter),
                                  "\" is not 1 to ", kMaxDelimiterBytes,
                                  " characters without quotes and line ends"));
}

// Checks that a data set of a format with columns says its one label if it has
// to, and only then. `path` is the field's.
absl::Status ValidateOneLabel(const std::string& path, bool is_set,
                              const job::Model& model) {
  if (model.output().empty()) {
    return is_set || !ReadsLabels(model.loss()) ? absl::OkStatus()
                                                : Missing(path);
  }
  if (!is_set) return absl::OkStatus();
  return Fault(path, "model.output says the columns of the labels; remove it");
}

// Returns the columns that the losses read beside labels, and for the examples
// that are evaluated the metrics' columns as well.
std::vector<ExampleColumn> ColumnsBesideLabels(absl::string_view dataset,
                                               const job::Model& model) {
  std::vector<ExampleColumn> columns = ColumnsOf(model.loss());
  for (const job::Output& output : model.output()) {
    for (ExampleColumn& column : ColumnsOf(output.loss())) {
      columns.push_back(std::move(column));
    }
  }
  if (dataset == "eval") AddMetricColumns(model, columns);
  return columns;
}

absl::Status ValidateLabelRule(const std::string& path,
                               const job::CsvLabel& label) {
  if (label.positive().empty() || label.class_().empty()) {
    return absl::OkStatus();
  }
  return Fault(path, "has both positive and class; choose one");
}

Faults ValidateCsv(const std::string& path, const job::CsvDataset& csv,
                   const job::Model& model,
                   const std::vector<ExampleColumn>& beside_labels) {
  Faults faults;
  faults.Add(ValidateFiles(path, csv));
  faults.Add(
      ValidateDelimiter(absl::StrCat(path, ".delimiter"), csv.delimiter()));
  faults.Add(RequireInRange(absl::StrCat(path, ".skip_lines"), csv.skip_lines(),
                            0, kMaxSkippedLines));
  faults.Add(RequireInRange(absl::StrCat(path, ".column"), csv.column_size(), 0,
                            kMaxFileColumns));
  const std::vector<std::string> columns(csv.column().begin(),
                                         csv.column().end());
  std::set<std::string> distinct;
  for (const std::string& column : columns) {
    if (distinct.insert(column).second) continue;
    faults.Add(Fault(absl::StrCat(path, ".column"),
                     absl::StrCat(column, " appears twice")));
  }
  const auto check_column = [&](absl::string_view field,
                                const std::string& column) {
    if (columns.empty() || distinct.count(column) > 0) return;
    faults.Add(Fault(absl::StrCat(path, field),
                     absl::StrCat("the column list has no \"", column, "\"",
                                  DidYouMean(column, columns))));
  };
  faults.Add(ValidateOneLabel(absl::StrCat(path, ".label.column"),
                              csv.label().has_column(), model));
  if (csv.label().has_column()) {
    check_column(".label.column", csv.label().column());
  }
  for (const job::Output& output : model.output()) {
    const std::string of = absl::StrCat(": of output \"", output.name(), "\"");
    const std::string& label = output.label().column();
    if (!label.empty()) check_column(of, label);
    if (!output.mask().empty()) check_column(of, output.mask());
  }
  for (const ExampleColumn& column : beside_labels) {
    check_column(": a loss or a metric", column.name);
  }
  if (csv.has_weight_column()) {
    check_column(".weight_column", csv.weight_column());
  }
  faults.Add(ValidateLabelRule(absl::StrCat(path, ".label"), csv.label()));
  return faults;
}

// Archives, files of one array each, or both.
absl::Status ValidateArrays(const std::string& path,
                            const job::ArrayDataset& arrays) {
  if (!arrays.file().empty() || arrays.array().empty()) {
    RETURN_IF_ERROR(ValidateFiles(path, arrays));
  }
  RETURN_IF_ERROR(RequireInRange(absl::StrCat(path, ".array"),
                                 arrays.array_size(), 0, kMaxPatterns));
  for (int i = 0; i < arrays.array_size(); ++i) {
    const std::string field = absl::StrCat(path, ".array[", i, "]");
    const job::NamedArray& array = arrays.array(i);
    if (array.name().empty()) return Missing(field + ".name");
    RETURN_IF_ERROR(RequirePath(field + ".file", array.file()));
  }
  return absl::OkStatus();
}

// A source of the user's own may need no files.
absl::Status ValidateCustom(const std::string& path,
                            const job::CustomDataset& custom) {
  if (custom.type().empty()) return Missing(absl::StrCat(path, ".type"));
  return custom.file().empty() ? absl::OkStatus() : ValidateFiles(path, custom);
}

// Formats without columns have no labels for several outputs, and nothing
// beside labels.
absl::Status ValidateColumns(const std::string& path,
                             const job::Dataset& dataset,
                             const job::Model& model,
                             const std::vector<ExampleColumn>& beside_labels) {
  const bool has_columns = dataset.has_csv() || dataset.has_tfrecord() ||
                           dataset.has_criteo() || dataset.has_ratings() ||
                           dataset.has_array() || dataset.has_parquet() ||
                           dataset.has_custom();
  if (has_columns || dataset.kind_case() == job::Dataset::KIND_NOT_SET) {
    return absl::OkStatus();
  }
  if (!beside_labels.empty()) {
    return Fault(
        path, absl::StrCat(
                  "a loss or a metric reads the column \"",
                  beside_labels.front().name,
                  "\", and this format has no columns: use "
                  "csv, tfrecord, array, parquet, criteo, ratings or custom"));
  }
  if (model.output().empty()) return absl::OkStatus();
  return Fault(
      path,
      absl::StrCat(
          "model.output \"", model.output(0).name(),
          "\" has its labels in a column, and this format has "
          "no columns: use csv, tfrecord, array, parquet, criteo, ratings or "
          "custom"));
}

Faults ValidateFormat(const std::string& path, const job::Dataset& dataset,
                      const job::Model& model) {
  const std::vector<ExampleColumn> columns = ColumnsBesideLabels(path, model);
  Faults faults;
  faults.Add(ValidateColumns(path, dataset, model, columns));
  switch (dataset.kind_case()) {
    case job::Dataset::kIdx:
      faults.Add(RequirePath(absl::StrCat(path, ".idx.images"),
                             dataset.idx().images()));
      faults.Add(RequirePath(absl::StrCat(path, ".idx.labels"),
                             dataset.idx().labels()));
      break;
    case job::Dataset::kCifar:
      faults.Add(ValidateFiles(absl::StrCat(path, ".cifar"), dataset.cifar()));
      break;
    case job::Dataset::kLibsvm:
      faults.Add(
          ValidateFiles(absl::StrCat(path, ".libsvm"), dataset.libsvm()));
      faults.Add(RequireInRange(absl::StrCat(path, ".libsvm.first_index"),
                                dataset.libsvm().first_index(), 0, 1));
      break;
    case job::Dataset::kCsv:
      faults.Add(ValidateCsv(absl::StrCat(path, ".csv"), dataset.csv(), model,
                             columns));
      break;
    case job::Dataset::kCriteo:
      faults.Add(
          ValidateFiles(absl::StrCat(path, ".criteo"), dataset.criteo()));
      break;
    case job::Dataset::kRatings:
      faults.Add(
          ValidateFiles(absl::StrCat(path, ".ratings"), dataset.ratings()));
      break;
    case job::Dataset::kTfrecord:
      faults.Add(
          ValidateFiles(absl::StrCat(path, ".tfrecord"), dataset.tfrecord()));
      faults.Add(ValidateOneLabel(absl::StrCat(path, ".tfrecord.label"),
                                  dataset.tfrecord().has_label(), model));
      break;
    case job::Dataset::kArray:
      faults.Add(ValidateArrays(absl::StrCat(path, ".array"), dataset.array()));
      faults.Add(ValidateOneLabel(absl::StrCat(path, ".array.label"),
                                  dataset.array().has_label(), model));
      break;
    case job::Dataset::kParquet:
      faults.Add(
          ValidateFiles(absl::StrCat(path, ".parquet"), dataset.parquet()));
      faults.Add(ValidateOneLabel(absl::StrCat(path, ".parquet.label.column"),
                                  dataset.parquet().label().has_column(),
                                  model));
      faults.Add(ValidateLabelRule(absl::StrCat(path, ".parquet.label"),
                                   dataset.parquet().label()));
      break;
    case job::Dataset::kCustom:
      faults.Add(
          ValidateCustom(absl::StrCat(path, ".custom"), dataset.custom()));
      break;
    case job::Dataset::KIND_NOT_SET:
      faults.Add(Fault(path,
                       "no format is chosen: idx, cifar, libsvm, csv, criteo, "
                       "ratings, tfrecord, array, parquet or custom"));
  }
  return faults;
}

Faults ValidateImage(const std::string& path, const job::Dataset& dataset) {
  Faults faults;
  if (!dataset.has_image()) return faults;
  if (!dataset.has_idx() && !dataset.has_cifar()) {
    faults.Add(Fault(path, "only idx and cifar have images"));
    return faults;
  }
  const job::ImageTransform& image = dataset.image();
  faults.Add(RequireInRange(absl::StrCat(path, ".random_crop_padding"),
                            image.random_crop_padding(), 0, kMaxCropPadding));
  for (const float mean : image.mean()) {
    faults.Add(RequireFinite(absl::StrCat(path, ".mean"), mean));
  }
  for (const float stddev : image.stddev()) {
    faults.Add(RequirePositive(absl::StrCat(path, ".stddev"), stddev));
  }
  return faults;
}

absl::Status ValidateBatchSize(const std::string& path,
                               const job::Dataset& dataset) {
  if (dataset.has_micro_batch_size()) {
    RETURN_IF_ERROR(RequireInRange(absl::StrCat(path, ".micro_batch_size"),
                                   dataset.micro_batch_size(), 1, kMaxInt));
  }
  if (!dataset.has_global_batch_size()) {
    return RequireInRange(absl::StrCat(path, ".batch_size"),
                          dataset.batch_size(), 1, kMaxInt);
  }
  const std::string global = absl::StrCat(path, ".global_batch_size");
  if (dataset.has_batch_size()) {
    return Fault(global, absl::StrCat(dataset.global_batch_size(),
                                      " is set, and so is batch_size (",
                                      dataset.batch_size(), "): set one"));
  }
  return RequireInRange(global, dataset.global_batch_size(), 1, kMaxInt);
}

// A loss that compares the examples of a batch has no parts of it.
absl::Status ValidateMicroBatches(const std::string& path,
                                  const job::Dataset& dataset,
                                  const job::Model& model) {
  if (!dataset.has_micro_batch_size()) return absl::OkStatus();
  const auto check = [&path](const job::Loss& loss) -> absl::Status {
    if (!ComparesExamples(loss)) return absl::OkStatus();
    return Fault(
        path,
        "pairwise_logistic and in_batch_softmax compare all examples "
        "of a batch, which micro-batches divide; remove it, and choose "
        "a batch_size that fits");
  };
  for (const job::Output& output : model.output()) {
    RETURN_IF_ERROR(check(output.loss()));
  }
  return check(model.loss());
}

absl::Status ValidateSplit(const std::string& path, const job::Split& split) {
  const double from = split.from();
  const double to = split.to();
  if (from >= 0 && from < to && to <= 1) return absl::OkStatus();
  return Fault(path, absl::StrCat("from is ", from, " and to is ", to,
                                  "; they must be 0 <= from < to <= 1"));
}

}  // namespace

Faults ValidateDataset(absl::string_view path, const job::Dataset& dataset,
                       const job::Model& model) {
  const auto field = [path](absl::string_view name) {
    return absl::StrCat(path, ".", name);
  };
  Faults faults = ValidateFormat(std::string(path), dataset, model);
  faults.Add(ValidateBatchSize(std::string(path), dataset));
  faults.Add(RequireInRange(field("shuffle_buffer"), dataset.shuffle_buffer(),
                            0, kMaxShuffleBuffer));
  faults.Add(RequireInRange(field("prefetch_batches"),
                            dataset.prefetch_batches(), 1,
                            kMaxPrefetchBatches));
  faults.Add(RequireInRange(field("decode_threads"), dataset.decode_threads(),
                            1, kMaxDecodeThreads));
  faults.Add(ValidateMicroBatches(field("micro_batch_size"), dataset, model));
  faults.Add(ValidateImage(field("image"), dataset));
  if (dataset.has_split()) {
    faults.Add(ValidateSplit(field("split"), dataset.split()));
  }
  return faults;
}

}  // namespace parasol
