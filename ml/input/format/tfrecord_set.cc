#include "ml/input/format/tfrecord_set.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/crc32c.h"
#include "base/did_you_mean.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "ml/input/feature/column_features.h"
#include "ml/input/feature/value.h"
#include "ml/input/file/file_set.h"
#include "ml/input/file/input_file.h"
#include "ml/input/file/known_format.h"
#include "ml/input/format/column_examples.h"
#include "ml/input/format/data_files.h"
#include "ml/input/format/label_rule.h"
#include "ml/input/format/read_records.h"
#include "ml/input/format/target_reader.h"
#include "ml/input/format/tf_example.h"
#include "ml/input/record/records.h"

namespace parasol {
namespace {

constexpr size_t kLengthBytes = 8;
constexpr size_t kCrcBytes = 4;
constexpr size_t kHeaderBytes = kTfRecordHeaderBytes;
constexpr int64_t kRecordsLookedAt = 1000;
constexpr size_t kMaxTfRecordColumns = 65536;

uint64_t LittleEndian(absl::string_view bytes) {
  uint64_t number = 0;
  for (size_t i = bytes.size(); i-- > 0;) {
    number = number << 8 | static_cast<uint8_t>(bytes[i]);
  }
  return number;
}

bool CrcIs(absl::string_view stored, absl::string_view bytes) {
  return LittleEndian(stored) == MaskCrc(Crc32cOf(bytes));
}

struct TfRecordSet final : public ExampleSet {
  TfRecordSet(Records read, ColumnFeatures column_features,
              const SetOptions& options, const job::TfRecordDataset& spec)
      : records(std::move(read)),
        starts(records.file_starts()),
        examples(std::move(column_features), options, spec.has_weight()),
        label_slot(examples.columns().size()) {
    for (size_t i = 0; i < label_slot; ++i) {
      slots[examples.columns()[i]].push_back(i);
    }
    if (examples.reads_label()) slots[spec.label()].push_back(label_slot);
    if (examples.reads_weight()) {
      slots[spec.weight()].push_back(label_slot + 1);
    }
  }

  const std::vector<int64_t>& file_starts() const override { return starts; }
  bool is_sample() const override { return records.is_sample(); }
  std::unique_ptr<ExampleDecoder> NewDecoder() const override;

  const Records records;
  const std::vector<int64_t> starts;
  const ColumnExamples examples;
  // Slots of a ColumnValues for each feature: the examples' columns come first,
  // then label and weight.
  const size_t label_slot;
  absl::flat_hash_map<std::string, std::vector<size_t>> slots;
};

class TfRecordDecoder final : public ExampleDecoder {
 public:
  explicit TfRecordDecoder(const TfRecordSet& set)
      : set_(set), reader_(set.records), row_(set.label_slot + 2) {}

  absl::Status Append(int64_t example, uint64_t /*random*/,
                      Batch& batch) override {
    ASSIGN_OR_RETURN(const absl::string_view bytes,
                     TfRecordBytes(reader_, example));
    const absl::Status status = AppendExample(bytes, batch);
    if (status.ok()) return status;
    return reader_.Corrupt(example, 0, status.message());
  }

  void Prefetch(int64_t example) override { reader_.Prefetch(example); }

 private:
  absl::Status AppendExample(absl::string_view bytes, Batch& batch) {
    for (std::vector<FieldValue>& values : row_) values.clear();
    RETURN_IF_ERROR(
        ForEachFeature(bytes,
                       [this](absl::string_view name,
                              absl::string_view feature) -> absl::Status {
                         const auto wanted = set_.slots.find(name);
                         if (wanted == set_.slots.end())
                           return absl::OkStatus();
                         for (const size_t slot : wanted->second) {
                           RETURN_IF_ERROR(ReadFeature(feature, row_[slot]));
                         }
                         return absl::OkStatus();
                       }));
    return set_.examples.Append(row_, row_[set_.label_slot],
                                row_[set_.label_slot + 1], batch);
  }

  const TfRecordSet& set_;
  RecordReader reader_;
  ColumnValues row_;
};

std::unique_ptr<ExampleDecoder> TfRecordSet::NewDecoder() const {
  return std::make_unique<TfRecordDecoder>(*this);
}

std::vector<std::string> PatternsOf(const job::TfRecordDataset& tfrecord) {
  return {tfrecord.file().begin(), tfrecord.file().end()};
}

absl::StatusOr<Records> ReadTfRecords(const job::TfRecordDataset& tfrecord,
                                      const std::string& data_dir,
                                      int64_t sample_bytes,
                                      const SetMemory& memory) {
  ASSIGN_OR_RETURN(DataFiles files,
                   DataFiles::Find(data_dir, PatternsOf(tfrecord),
                                   "tfrecord.file", sample_bytes));
  return ReadRecords(std::move(files), std::make_shared<TfRecordFormat>(),
                     Records::Content::kBinary, memory);
}

// Adds the names of the features of an example, as far as it can be read.
void AddNames(absl::string_view example, std::set<std::string>& names) {
  ForEachFeature(example, [&names](absl::string_view name, absl::string_view) {
    if (names.size() < kMaxTfRecordColumns) names.emplace(name);
    return absl::OkStatus();
  }).IgnoreError();
}

// Returns the names in the first records, and the `wanted` ones that later
// records have: looks no further than it takes to find these. Records that
// can't be read are the decoder's business.
std::vector<std::string> ColumnsOf(const Records& records,
                                   const std::vector<std::string>& wanted) {
  std::set<std::string> names;
  RecordReader reader(records);
  int64_t i = 0;
  for (; i < std::min(records.size(), kRecordsLookedAt); ++i) {
    const auto bytes = TfRecordBytes(reader, i);
    if (bytes.ok()) AddNames(*bytes, names);
  }
  absl::flat_hash_set<std::string> awaited(wanted.begin(), wanted.end());
  for (const std::string& name : names) awaited.erase(name);
  const auto visit = [&](absl::string_view name, absl::string_view) {
    if (awaited.erase(name) > 0) names.emplace(name);
    return absl::OkStatus();
  };
  for (; i < records.size() && !awaited.empty(); ++i) {
    const auto bytes = TfRecordBytes(reader, i);
    if (bytes.ok()) ForEachFeature(*bytes, visit).IgnoreError();
  }
  return std::vector<std::string>(names.begin(), names.end());
}

// The columns that a model reads: what records may have late, or seldom.
std::vector<std::string> WantedColumns(const job::TfRecordDataset& tfrecord,
                                       const SetOptions& options) {
  std::vector<std::string> wanted;
  for (const job::ModelInput& input : options.inputs.inputs) {
    for (const job::NumericColumn& column : input.dense().column()) {
      wanted.push_back(column.name());
    }
    for (const job::IdColumn& column : input.ids().column()) {
      wanted.insert(wanted.end(), column.name().begin(), column.name().end());
    }
  }
  wanted.insert(wanted.end(), options.inputs.kept.begin(),
                options.inputs.kept.end());
  if (options.without_labels) return wanted;
  if (options.inputs.has_one_label()) wanted.push_back(tfrecord.label());
  if (tfrecord.has_weight()) wanted.push_back(tfrecord.weight());
  for (std::string& column : TargetColumns(options.inputs.targets)) {
    wanted.push_back(std::move(column));
  }
  for (const ExampleColumn& column : options.inputs.columns) {
    wanted.push_back(column.name);
  }
  return wanted;
}

// Replaces `bytes` by the next `size` bytes of the file; fewer at its end. A
// length that is wrong takes no more memory than the file has bytes.
absl::Status ReadNext(uint64_t size, InputFile& file, std::string& bytes) {
  constexpr uint64_t kPieceBytes = 1 << 20;
  bytes.clear();
  while (bytes.size() < size) {
    const size_t before = bytes.size();
    const size_t piece = std::min(size - before, kPieceBytes);
    bytes.resize(before + piece);
    ASSIGN_OR_RETURN(
        const size_t n,
        file.Read(absl::MakeSpan(
            reinterpret_cast<uint8_t*>(bytes.data()) + before,  // NOLINT
            piece)));
    bytes.resize(before + n);
    if (n < piece) break;
  }
  return absl::OkStatus();
}

// Adds the names of a file's first `limit` records, up to a broken frame, of
// which `damage` says where it is unless it says something. Returns how many
// there were.
absl::StatusOr<int64_t> AddNamesOfFile(const std::string& path, int64_t limit,
                                       std::set<std::string>& names,
                                       std::string& damage) {
  const auto broken = [&](int64_t i, absl::string_view what) {
    if (damage.empty()) {
      damage = absl::StrCat(path, ", behind ", i, " records: ", what);
    }
    return i;
  };
  ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> file,
                   InputFile::Open(path));
  std::string bytes;
  for (int64_t i = 0; i < limit; ++i) {
    RETURN_IF_ERROR(ReadNext(kHeaderBytes, *file, bytes));
    const absl::string_view header = bytes;
    if (i == 0) {
      RETURN_IF_ERROR(CheckFormat(path, header, /*is_text=*/false));
    }
    if (header.empty() && i > 0) return i;
    if (header.empty()) return broken(i, "the file is empty");
    if (header.size() < kHeaderBytes) {
      return broken(i, "ends within the frame of a record");
    }
    if (!HasTfRecordHeader(header)) {
      return broken(i, "the crc32c of a record's length is wrong");
    }
    const uint64_t length = LittleEndian(header.substr(0, kLengthBytes));
    if (length > kMaxRecordBytes) {
      return broken(i, absl::StrCat("a record of ", length, " bytes"));
    }
    RETURN_IF_ERROR(ReadNext(length + kCrcBytes, *file, bytes));
    if (bytes.size() < length + kCrcBytes) {
      return broken(i,
                    absl::StrCat("ends within a record of ", length, " bytes"));
    }
    const absl::string_view record = bytes;
    if (CrcIs(record.substr(length), record.substr(0, length))) {
      AddNames(record.substr(0, length), names);
    }
  }
  return limit;
}

class TfRecordColumns final : public RawColumns {
 public:
  TfRecordColumns(Records records, const std::vector<std::string>& wanted)
      : RawColumns(ColumnsOf(records, wanted)),
        records_(std::move(records)),
        reader_(records_) {
    for (size_t i = 0; i < names().size(); ++i) slots_.emplace(names()[i], i);
  }

  int64_t size() const override { return records_.size(); }
  bool is_sample() const override { return records_.is_sample(); }
  absl::Status CheckWhole() const override { return records_.CheckAllWhole(); }

  absl::Status Read(int64_t record, ColumnValues& row) override {
    row.resize(names().size());
    for (std::vector<FieldValue>& values : row) values.clear();
    ASSIGN_OR_RETURN(const absl::string_view bytes,
                     TfRecordBytes(reader_, record));
    const auto visit = [&](absl::string_view name,
                           absl::string_view feature) -> absl::Status {
      const auto slot = slots_.find(name);
      if (slot == slots_.end()) return absl::OkStatus();
      return ReadFeature(feature, row[slot->second]);
    };
    const absl::Status status = ForEachFeature(bytes, visit);
    if (status.ok()) return status;
    return reader_.Corrupt(record, 0, status.message());
  }

 private:
  const Records records_;
  RecordReader reader_;
  absl::flat_hash_map<std::string, size_t> slots_;
};

// Returns OK if some record is a tf.Example with a feature, whose names are
// `columns`, or if the first record of a sample is too long for that.
absl::Status CheckHasFeatures(const Records& records,
                              const std::vector<std::string>& columns,
                              const job::TfRecordDataset& tfrecord) {
  if (!columns.empty() || (records.size() == 0 && records.is_sample())) {
    return absl::OkStatus();
  }
  if (records.size() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("tfrecord.file: ", ShownText(tfrecord.file(0)),
                     " has no record: its files are empty"));
  }
  RecordReader reader(records);
  RETURN_IF_ERROR(TfRecordBytes(reader, 0).status());
  return reader.Corrupt(0, 0, "no record is a tf.Example with a feature");
}

absl::Status CheckFeature(const std::vector<std::string>& columns,
                          const std::string& name, absl::string_view field) {
  if (std::find(columns.begin(), columns.end(), name) != columns.end()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": no example has a feature \"", name, "\"",
                   DidYouMean(name, columns)));
}

}  // namespace

absl::StatusOr<std::optional<size_t>> TfRecordFormat::Begin(
    const std::string& /*path*/, const FilePart& /*part*/) {
  return std::optional<size_t>(0);
}

FoundRecord TfRecordFormat::Find(const FilePart& part, size_t at) const {
  const size_t rest = part.file_bytes - at;
  const FoundRecord cut_off = {.kind = FoundRecord::Kind::kCutOff};
  const auto broken = [&](absl::string_view what) {
    return FoundRecord{.kind = FoundRecord::Kind::kBroken,
                       .offset = at,
                       .length = rest,
                       .next = part.file_bytes,
                       .what = absl::StrCat(what, "; the last ", rest,
                                            " bytes of the file are lost")};
  };
  if (rest < kHeaderBytes + kCrcBytes) {
    return part.is_cut ? cut_off : broken("ends within the frame of a record");
  }
  const absl::string_view there = part.From(at);
  if (there.size() < kHeaderBytes) return cut_off;
  if (!HasTfRecordHeader(there)) {
    return broken("the crc32c of a record's length is wrong");
  }
  const uint64_t length = LittleEndian(there.substr(0, kLengthBytes));
  if (length > rest - kHeaderBytes - kCrcBytes) {
    return part.is_cut ? cut_off
                       : broken(absl::StrCat("ends within a record of ", length,
                                             " bytes"));
  }
  const size_t bytes = kHeaderBytes + length + kCrcBytes;
  return {.kind = FoundRecord::Kind::kWhole,
          .offset = at,
          .length = bytes,
          .next = at + bytes};
}

absl::StatusOr<absl::string_view> TfRecordBytes(RecordReader& records,
                                                int64_t record) {
  ASSIGN_OR_RETURN(const absl::string_view framed, records.Read(record));
  const absl::string_view bytes =
      framed.substr(kHeaderBytes, framed.size() - kHeaderBytes - kCrcBytes);
  if (CrcIs(framed.substr(framed.size() - kCrcBytes), bytes)) return bytes;
  return records.Corrupt(record, 0, "the crc32c of a record is wrong");
}

absl::StatusOr<std::shared_ptr<const ExampleSet>> OpenTfRecordSet(
    const job::TfRecordDataset& tfrecord, const SetOptions& options) {
  const std::vector<TargetInput>& targets = options.inputs.targets;
  const bool reads_label =
      !options.without_labels && options.inputs.has_one_label();
  if (reads_label && !tfrecord.has_label()) {
    return absl::InvalidArgumentError("tfrecord.label is not set");
  }
  ASSIGN_OR_RETURN(Records records,
                   ReadTfRecords(tfrecord, options.data_dir,
                                 options.sample_bytes, options.memory));
  if (!options.skip_corrupt) {
    RETURN_IF_ERROR(records.CheckAllWhole());
  }
  Columns columns = {
      .names = ColumnsOf(records, WantedColumns(tfrecord, options)),
      .labels_and_weights = TargetColumns(targets)};
  RETURN_IF_ERROR(CheckHasFeatures(records, columns.names, tfrecord));
  columns.labels_and_weights.insert(columns.labels_and_weights.end(),
                                    options.label_columns.begin(),
                                    options.label_columns.end());
  if (reads_label) {
    RETURN_IF_ERROR(
        CheckFeature(columns.names, tfrecord.label(), "tfrecord.label"));
  }
  if (!options.without_labels) {
    for (const std::string& column : TargetColumns(targets)) {
      RETURN_IF_ERROR(CheckFeature(columns.names, column, "model.output"));
    }
    for (const ExampleColumn& column : options.inputs.columns) {
      RETURN_IF_ERROR(
          CheckFeature(columns.names, column.name, "a loss or a metric"));
    }
  }
  for (const std::string& column : options.inputs.kept) {
    RETURN_IF_ERROR(CheckFeature(columns.names, column, "column to keep"));
  }
  if (targets.empty()) columns.labels_and_weights.push_back(tfrecord.label());
  if (tfrecord.has_weight()) {
    if (!options.without_labels) {
      RETURN_IF_ERROR(
          CheckFeature(columns.names, tfrecord.weight(), "tfrecord.weight"));
    }
    columns.labels_and_weights.push_back(tfrecord.weight());
  }
  ASSIGN_OR_RETURN(ColumnFeatures features,
                   ColumnFeatures::Create(options.inputs.inputs, columns));
  return std::make_shared<TfRecordSet>(std::move(records), std::move(features),
                                       options, tfrecord);
}

absl::StatusOr<std::vector<std::string>> FirstTfRecordColumns(
    const job::TfRecordDataset& tfrecord, const std::string& data_dir) {
  ASSIGN_OR_RETURN(const FoundFiles files,
                   FindFiles(data_dir, PatternsOf(tfrecord), "tfrecord.file"));
  std::set<std::string> names;
  int64_t looked_at = 0;
  std::string damage;
  for (const std::string& path : files.paths) {
    ASSIGN_OR_RETURN(
        const int64_t records,
        AddNamesOfFile(path, kRecordsLookedAt - looked_at, names, damage));
    looked_at += records;
  }
  if (!names.empty()) {
    return std::vector<std::string>(names.begin(), names.end());
  }
  if (looked_at == 0 && !damage.empty()) {
    return absl::DataLossError(damage);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(files.paths.front(), ": none of the first ", looked_at,
                   " records of the data set is a tf.Example with a feature"));
}

absl::StatusOr<std::unique_ptr<RawColumns>> OpenTfRecordColumns(
    const job::TfRecordDataset& tfrecord, const std::string& data_dir,
    const std::vector<std::string>& wanted, int64_t sample_bytes) {
  ASSIGN_OR_RETURN(Records records,
                   ReadTfRecords(tfrecord, data_dir, sample_bytes, {}));
  RETURN_IF_ERROR(CheckHasFeatures(records, ColumnsOf(records, {}), tfrecord));
  return std::make_unique<TfRecordColumns>(std::move(records), wanted);
}

}  // namespace parasol
