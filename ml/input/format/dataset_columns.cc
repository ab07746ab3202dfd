#include "ml/input/format/dataset_columns.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "ml/input/file/file_set.h"
#include "ml/input/file/input_file.h"
#include "ml/input/format/array_set.h"
#include "ml/input/format/csv_format.h"
#include "ml/input/format/csv_set.h"
#include "ml/input/format/custom_source.h"
#include "ml/input/format/data_files.h"
#include "ml/input/format/parquet_set.h"
#include "ml/input/format/tfrecord_set.h"

namespace parasol {
namespace {

// Bytes of a file in which its header is looked for first, and at most.
constexpr size_t kFirstBytes = 1 << 20;
constexpr size_t kMaxHeaderBytes = 64 << 20;

void AddUnlessEmpty(const std::string& column, Columns& columns) {
  if (!column.empty()) columns.labels_and_weights.push_back(column);
}

Columns Listed(const job::CsvDataset& csv, std::vector<std::string> names) {
  Columns columns = {.names = std::move(names), .labels_and_weights = {}};
  AddUnlessEmpty(csv.label().column(), columns);
  AddUnlessEmpty(csv.weight_column(), columns);
  return columns;
}

std::vector<std::string> NamesOf(const job::CsvDataset& csv) {
  return {csv.column().begin(), csv.column().end()};
}

// Reads on until `text` has `size` bytes. Returns false at the file's end.
absl::StatusOr<bool> ReadTo(size_t size, InputFile& file, std::string& text) {
  const size_t before = text.size();
  text.resize(size);
  ASSIGN_OR_RETURN(
      const size_t n,
      file.Read(absl::MakeSpan(
          reinterpret_cast<uint8_t*>(text.data()) + before,  // NOLINT
          size - before)));
  text.resize(before + n);
  return text.size() == size;
}

// The header of the first file that has one. A header that does not end in what
// was read of the file is not taken: its last column may be cut off.
absl::StatusOr<std::vector<std::string>> HeaderOf(const job::CsvDataset& csv,
                                                  const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> file,
                   InputFile::Open(path));
  std::string text;
  for (size_t size = kFirstBytes;; size *= 4) {
    ASSIGN_OR_RETURN(const bool has_more, ReadTo(size, *file, text));
    RETURN_IF_ERROR(CheckFormat(path, text, /*is_text=*/true));
    const size_t whole = has_more ? text.rfind('\n') + 1 : text.size();
    CsvFormat lines(csv);
    const absl::Status read =
        lines
            .Begin(path, {.bytes = absl::string_view(text).substr(0, whole),
                          .file_bytes = whole})
            .status();
    if (read.ok() && (!lines.columns().empty() || !has_more)) {
      return lines.columns();
    }
    if (!has_more || size * 4 > kMaxHeaderBytes) {
      RETURN_IF_ERROR(read);
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": its first ", size,
                       " bytes have no header; list the columns "
                       "in csv.column"));
    }
  }
}

absl::StatusOr<Columns> ReadCsvColumns(const job::CsvDataset& csv,
                                       const std::string& data_dir) {
  const std::vector<std::string> patterns(csv.file().begin(), csv.file().end());
  ASSIGN_OR_RETURN(const FoundFiles files,
                   FindFiles(data_dir, patterns, "csv.file"));
  for (const std::string& path : files.paths) {
    ASSIGN_OR_RETURN(std::vector<std::string> names, HeaderOf(csv, path));
    if (!names.empty()) return Listed(csv, std::move(names));
  }
  const std::string where =
      csv.skip_lines() > 0
          ? absl::StrCat("behind the ", csv.skip_lines(),
                         " lines of csv.skip_lines; lower that")
          : "in it";
  return absl::InvalidArgumentError(absl::StrCat(
      files.paths.front(), ": the file has no line of columns' names ", where));
}

absl::StatusOr<Columns> ReadTfRecordColumns(
    const job::TfRecordDataset& tfrecord, const std::string& data_dir) {
  Columns columns;
  ASSIGN_OR_RETURN(columns.names, FirstTfRecordColumns(tfrecord, data_dir));
  AddUnlessEmpty(tfrecord.label(), columns);
  AddUnlessEmpty(tfrecord.weight(), columns);
  return columns;
}

}  // namespace

std::optional<Columns> ListedColumns(const job::Dataset& dataset) {
  if (dataset.has_criteo()) {
    const job::CsvDataset csv = CsvOf(dataset.criteo());
    return Listed(csv, NamesOf(csv));
  }
  if (dataset.has_ratings()) {
    const job::CsvDataset csv = CsvOf(dataset.ratings());
    return Listed(csv, NamesOf(csv));
  }
  if (dataset.has_csv() && !dataset.csv().column().empty()) {
    return Listed(dataset.csv(), NamesOf(dataset.csv()));
  }
  return std::nullopt;
}

absl::StatusOr<Columns> ReadColumns(const job::Dataset& dataset,
                                    const std::string& data_dir) {
  if (std::optional<Columns> listed = ListedColumns(dataset)) return *listed;
  if (dataset.has_csv()) return ReadCsvColumns(dataset.csv(), data_dir);
  if (dataset.has_tfrecord()) {
    return ReadTfRecordColumns(dataset.tfrecord(), data_dir);
  }
  if (dataset.has_array()) return ReadArrayColumns(dataset.array(), data_dir);
  if (dataset.has_parquet()) {
    return ReadParquetColumns(dataset.parquet(), data_dir);
  }
  if (dataset.has_custom()) {
    return ReadCustomColumns(dataset.custom(), data_dir);
  }
  return absl::InvalidArgumentError(
      "only csv, tfrecord, array, parquet, criteo, ratings and custom have "
      "named columns");
}

}  // namespace parasol
