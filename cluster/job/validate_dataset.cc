#include "cluster/job/validate_dataset.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/field_checks.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

constexpr int64_t kMaxShuffleBuffer = int64_t{1} << 32;
constexpr int64_t kMaxPrefetchBatches = 1024;
constexpr int64_t kMaxDecodeThreads = 256;
constexpr int64_t kMaxPatterns = 65536;
constexpr int64_t kMaxColumns = 65536;
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

absl::Status ValidateCsv(const std::string& path, const job::CsvDataset& csv) {
  RETURN_IF_ERROR(ValidateFiles(path, csv));
  RETURN_IF_ERROR(
      ValidateDelimiter(absl::StrCat(path, ".delimiter"), csv.delimiter()));
  RETURN_IF_ERROR(RequireInRange(absl::StrCat(path, ".skip_lines"),
                                 csv.skip_lines(), 0, kMaxSkippedLines));
  RETURN_IF_ERROR(RequireInRange(absl::StrCat(path, ".column"),
                                 csv.column_size(), 0, kMaxColumns));
  std::set<std::string> columns;
  for (const std::string& column : csv.column()) {
    if (!columns.insert(column).second) {
      return Fault(absl::StrCat(path, ".column"),
                   absl::StrCat(column, " appears twice"));
    }
  }
  const auto is_column = [&](absl::string_view field,
                             const std::string& column) {
    if (columns.empty() || columns.count(column) > 0) return absl::OkStatus();
    return Fault(absl::StrCat(path, field),
                 absl::StrCat("the column list has no \"", column, "\""));
  };
  if (!csv.label().has_column()) {
    return Missing(absl::StrCat(path, ".label.column"));
  }
  RETURN_IF_ERROR(is_column(".label.column", csv.label().column()));
  if (csv.has_weight_column()) {
    RETURN_IF_ERROR(is_column(".weight_column", csv.weight_column()));
  }
  if (!csv.label().positive().empty() && !csv.label().class_().empty()) {
    return Fault(absl::StrCat(path, ".label"),
                 "has both positive and class; choose one");
  }
  return absl::OkStatus();
}

absl::Status ValidateFormat(const std::string& path,
                            const job::Dataset& dataset) {
  switch (dataset.kind_case()) {
    case job::Dataset::kIdx:
      RETURN_IF_ERROR(RequirePath(absl::StrCat(path, ".idx.images"),
                                  dataset.idx().images()));
      return RequirePath(absl::StrCat(path, ".idx.labels"),
                         dataset.idx().labels());
    case job::Dataset::kCifar:
      return ValidateFiles(absl::StrCat(path, ".cifar"), dataset.cifar());
    case job::Dataset::kLibsvm:
      RETURN_IF_ERROR(
          ValidateFiles(absl::StrCat(path, ".libsvm"), dataset.libsvm()));
      return RequireInRange(absl::StrCat(path, ".libsvm.first_index"),
                            dataset.libsvm().first_index(), 0, 1);
    case job::Dataset::kCsv:
      return ValidateCsv(absl::StrCat(path, ".csv"), dataset.csv());
    case job::Dataset::kCriteo:
      return ValidateFiles(absl::StrCat(path, ".criteo"), dataset.criteo());
    case job::Dataset::kRatings:
      return ValidateFiles(absl::StrCat(path, ".ratings"), dataset.ratings());
    case job::Dataset::kTfrecord:
      RETURN_IF_ERROR(
          ValidateFiles(absl::StrCat(path, ".tfrecord"), dataset.tfrecord()));
      if (dataset.tfrecord().has_label()) return absl::OkStatus();
      return Missing(absl::StrCat(path, ".tfrecord.label"));
    case job::Dataset::KIND_NOT_SET:
      break;
  }
  return Fault(path,
               "no format is chosen: idx, cifar, libsvm, csv, criteo, ratings "
               "or tfrecord");
}

absl::Status ValidateImage(const std::string& path,
                           const job::Dataset& dataset) {
  if (!dataset.has_image()) return absl::OkStatus();
  if (!dataset.has_idx() && !dataset.has_cifar()) {
    return Fault(path, "only idx and cifar have images");
  }
  const job::ImageTransform& image = dataset.image();
  RETURN_IF_ERROR(RequireInRange(absl::StrCat(path, ".random_crop_padding"),
                                 image.random_crop_padding(), 0,
                                 kMaxCropPadding));
  for (const float mean : image.mean()) {
    RETURN_IF_ERROR(RequireFinite(absl::StrCat(path, ".mean"), mean));
  }
  for (const float stddev : image.stddev()) {
    RETURN_IF_ERROR(RequirePositive(absl::StrCat(path, ".stddev"), stddev));
  }
  return absl::OkStatus();
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

absl::Status ValidateSplit(const std::string& path, const job::Split& split) {
  const double from = split.from();
  const double to = split.to();
  if (from >= 0 && from < to && to <= 1) return absl::OkStatus();
  return Fault(path, absl::StrCat("from is ", from, " and to is ", to,
                                  "; they must be 0 <= from < to <= 1"));
}

}  // namespace

absl::Status ValidateDataset(absl::string_view path,
                             const job::Dataset& dataset) {
  const auto field = [path](absl::string_view name) {
    return absl::StrCat(path, ".", name);
  };
  RETURN_IF_ERROR(ValidateFormat(std::string(path), dataset));
  RETURN_IF_ERROR(ValidateBatchSize(std::string(path), dataset));
  RETURN_IF_ERROR(RequireInRange(
      field("shuffle_buffer"), dataset.shuffle_buffer(), 0, kMaxShuffleBuffer));
  RETURN_IF_ERROR(RequireInRange(field("prefetch_batches"),
                                 dataset.prefetch_batches(), 1,
                                 kMaxPrefetchBatches));
  RETURN_IF_ERROR(RequireInRange(
      field("decode_threads"), dataset.decode_threads(), 1, kMaxDecodeThreads));
  RETURN_IF_ERROR(ValidateImage(field("image"), dataset));
  if (!dataset.has_split()) return absl::OkStatus();
  return ValidateSplit(field("split"), dataset.split());
}

}  // namespace parasol
