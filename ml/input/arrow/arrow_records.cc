#include "ml/input/arrow/arrow_records.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/did_you_mean.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "ml/input/arrow/column_values.h"
#include "ml/input/arrow/value_record.h"
#include "ml/input/file/stored_files.h"

namespace parasol {
namespace {

// Bytes of records that are written to a disk at a time.
constexpr size_t kPieceBytes = 1 << 20;

// Records of files, in memory until they are too many for it.
class RecordStore {
 public:
  explicit RecordStore(const SetMemory& memory)
      : memory_(memory), most_(MostInMemory(memory)) {}

  // Bytes that Add() has taken of the file, and of all.
  uint64_t file_bytes() const { return file_bytes_; }
  uint64_t all_bytes() const { return all_bytes_; }

  // Takes records of the file at hand, and leaves `records` empty.
  absl::Status Add(std::string& records) {
    file_bytes_ += records.size();
    all_bytes_ += records.size();
    if (!is_on_disk_ && all_bytes_ > most_) {
      RETURN_IF_ERROR(MoveToDisk());
    }
    if (is_on_disk_) {
      RETURN_IF_ERROR(unpacked_.Unpack(records));
    } else {
      pieces_.push_back(records);
    }
    records.clear();
    return absl::OkStatus();
  }

  absl::Status EndFile(const std::string& path) {
    file_bytes_ = 0;
    if (is_on_disk_) {
      RETURN_IF_ERROR(unpacked_.Unpack(""));
      stored_.push_back(unpacked_.TakeUnpacked(path));
    } else {
      in_memory_.emplace_back(path, TakePieces());
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Records> Finish() {
    const auto format = std::make_shared<ValueRecordFormat>();
    if (!is_on_disk_) {
      Records records(Records::Content::kBinary);
      for (auto& [path, bytes] : in_memory_) {
        records.AddFile(path, std::move(bytes));
        records.AddAll(*format, 0, /*is_cut=*/false);
      }
      return records;
    }
    Records records(Records::Content::kBinary, format, memory_);
    for (StoredFile& file : stored_) {
      RETURN_IF_ERROR(records.AddStored(std::move(file)));
    }
    return records;
  }

 private:
  absl::Status MoveToDisk() {
    is_on_disk_ = true;
    for (auto& [path, bytes] : in_memory_) {
      RETURN_IF_ERROR(unpacked_.Unpack(bytes));
      stored_.push_back(unpacked_.TakeUnpacked(path));
      std::string().swap(bytes);
    }
    for (; !pieces_.empty(); pieces_.pop_front()) {
      RETURN_IF_ERROR(unpacked_.Unpack(pieces_.front()));
    }
    return absl::OkStatus();
  }

  // Joins the pieces: memory is taken as they are copied, one after the other.
  std::string TakePieces() {
    size_t bytes = 0;
    for (const std::string& piece : pieces_) bytes += piece.size();
    std::string all;
    all.reserve(bytes);
    for (; !pieces_.empty(); pieces_.pop_front()) all += pieces_.front();
    return all;
  }

  const SetMemory memory_;
  const uint64_t most_;  // bytes in memory
  uint64_t all_bytes_ = 0;
  uint64_t file_bytes_ = 0;
  bool is_on_disk_ = false;
  std::vector<std::pair<std::string, std::string>> in_memory_;
  std::deque<std::string> pieces_;  // records of the file at hand, in memory
  StoredFiles unpacked_;
  std::vector<StoredFile> stored_;
};

// The columns to be read of a file: each once, in its order, and which of them
// each column of a record is.
struct ReadPlan {
  std::vector<size_t> columns;
  std::vector<size_t> array_of;  // a place in `columns` for each of a record's
  std::vector<const ArrowType*> types;
};

ReadPlan PlanOf(const std::vector<size_t>& places, const ArrowFile& file) {
  ReadPlan plan;
  plan.columns = places;
  std::sort(plan.columns.begin(), plan.columns.end());
  plan.columns.erase(std::unique(plan.columns.begin(), plan.columns.end()),
                     plan.columns.end());
  for (const size_t place : places) {
    plan.array_of.push_back(
        std::lower_bound(plan.columns.begin(), plan.columns.end(), place) -
        plan.columns.begin());
    plan.types.push_back(&file.columns()[place].type);
  }
  return plan;
}

// Says which rows of a group behind the first `good` ones are lost; `rows`: all
// of them, or -1 if that is not known.
std::string LostRows(int64_t good, int64_t rows) {
  if (rows < 0) return absl::StrCat("; its rows from ", good, " on are lost");
  if (good >= rows) return "";
  return absl::StrCat("; rows ", good, " to ", rows - 1, " are lost");
}

// Converts files, one after the other.
class Conversion {
 public:
  Conversion(const ConversionOptions& options, RecordStore& store)
      : options_(options), store_(store), writer_(records_) {}

  // Returns false if the file has more than the sample.
  absl::StatusOr<bool> AddFile(const ReadPlan& plan, ArrowFile& file);
  int64_t size() const { return size_; }

  std::vector<ArrowRecords::Group>& groups() { return groups_; }
  std::map<int64_t, std::string>& damaged() { return damaged_; }

 private:
  absl::Status AddRecords(const ReadPlan& plan, int64_t rows,
                          const std::vector<const ArrowArray*>& arrays,
                          const ArrowFile& file);
  absl::Status AddRecord(const ReadPlan& plan, int64_t row,
                         const std::vector<const ArrowArray*>& arrays,
                         const ArrowFile& file);
  bool HasSample() const {
    return options_.sample_bytes > 0 &&
           store_.file_bytes() + records_.size() >= options_.sample_bytes;
  }

  const ConversionOptions& options_;
  RecordStore& store_;
  std::string records_;
  ValueRecordWriter writer_;
  size_t file_ = 0;
  int64_t size_ = 0;
  std::vector<ArrowRecords::Group> groups_;
  std::map<int64_t, std::string> damaged_;
  bool is_cut_ = false;  // the sample of the file is full
};

absl::StatusOr<bool> Conversion::AddFile(const ReadPlan& plan,
                                         ArrowFile& file) {
  is_cut_ = false;
  for (int64_t group = 0; group < file.groups() && !is_cut_; ++group) {
    groups_.push_back({.first_record = size_, .file = file_, .number = group});
    const absl::Status read = file.ReadGroup(
        group, plan.columns,
        [&](int64_t rows, const std::vector<const ArrowArray*>& arrays) {
          return AddRecords(plan, rows, arrays, file);
        });
    if (read.ok() || is_cut_) continue;
    // A file that has changed is not corrupt: other workers have its rows.
    RETURN_IF_ERROR(file.source_status());
    if (!options_.skip_corrupt || !absl::IsDataLoss(read)) return read;
    const std::string lost =
        LostRows(size_ - groups_.back().first_record, file.RowsOf(group));
    damaged_.emplace(size_++, absl::StrCat(read.message(), lost));
    writer_.AddBroken();
  }
  ++file_;
  RETURN_IF_ERROR(store_.Add(records_));
  return !is_cut_;
}

absl::Status Conversion::AddRecords(
    const ReadPlan& plan, int64_t rows,
    const std::vector<const ArrowArray*>& arrays, const ArrowFile& file) {
  for (int64_t row = 0; row < rows; ++row) {
    if (HasSample()) {
      is_cut_ = true;
      return absl::CancelledError("the sample is full");
    }
    RETURN_IF_ERROR(AddRecord(plan, row, arrays, file));
    if (records_.size() >= kPieceBytes) {
      RETURN_IF_ERROR(store_.Add(records_));
    }
  }
  return absl::OkStatus();
}

absl::Status Conversion::AddRecord(const ReadPlan& plan, int64_t row,
                                   const std::vector<const ArrowArray*>& arrays,
                                   const ArrowFile& file) {
  writer_.Begin();
  for (size_t i = 0; i < plan.types.size(); ++i) {
    const absl::Status added =
        AppendColumn(*plan.types[i], *arrays[plan.array_of[i]], row, writer_);
    if (added.ok()) continue;
    writer_.TakeBack();
    const std::string& name =
        file.columns()[plan.columns[plan.array_of[i]]].name;
    return file.Damaged(
        groups_.back().number,
        absl::StrCat("column \"", ShownText(name), "\": ", added.message()));
  }
  writer_.End();
  ++size_;
  return absl::OkStatus();
}

absl::Status TwoTypes(const std::string& path, const std::string& other,
                      const ArrowColumn& here, const ArrowColumn& there) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": column \"", ShownText(here.name), "\" is ",
                   here.type.name, ", and ", there.type.name, " in ", other,
                   "; write all files with one schema"));
}

// True if a column can be read and goes with other files' columns, of which one
// that is more than nulls is kept in `known`.
bool GoesWith(const ArrowType& type, std::optional<ArrowType>& known) {
  if (!type.is_readable()) return false;
  if (type.kind == ArrowType::Kind::kNull) return true;
  if (!known.has_value()) known = type;
  return IsSameColumn(type, *known);
}

}  // namespace

absl::Status ArrowRecords::Corrupt(int64_t record,
                                   absl::string_view what) const {
  const auto reason = damaged.find(record);
  if (reason != damaged.end()) return absl::DataLossError(reason->second);
  // A group without rows begins where the one behind it does.
  const auto behind = std::upper_bound(groups.begin(), groups.end(), record,
                                       [](int64_t number, const Group& group) {
                                         return number < group.first_record;
                                       });
  const Group& group = behind[-1];
  return absl::DataLossError(
      absl::StrCat(paths[group.file], ", row group ", group.number, ", row ",
                   record - group.first_record, ": ", what));
}

absl::StatusOr<ArrowFiles> ArrowFiles::Open(
    const ArrowLibrary& library, const std::vector<std::string>& paths) {
  ArrowFiles files(library);
  StoredFiles stored;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(StoredFile file, stored.Open(path));
    files.files_.push_back(std::move(file));
  }
  ASSIGN_OR_RETURN(const ArrowFile first,
                   ArrowFile::Open(library, files.files_.front()));
  files.columns_ = first.columns();
  return files;
}

std::vector<std::string> ArrowFiles::names() const {
  std::vector<std::string> names;
  for (const ArrowColumn& column : columns_) names.push_back(column.name);
  return names;
}

absl::StatusOr<std::vector<size_t>> ArrowFiles::Places(
    const std::vector<std::string>& names, const ArrowFile& file,
    const std::string& path) const {
  std::vector<size_t> places;
  for (const std::string& name : names) {
    const std::vector<size_t> found = file.Find(name);
    if (found.size() == 1) {
      places.push_back(found.front());
      continue;
    }
    std::vector<std::string> all;
    for (const ArrowColumn& column : file.columns()) {
      all.push_back(column.name);
    }
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": ",
        found.empty() ? "there is no column \""
                      : "several columns are named \"",
        ShownText(name), "\"", found.empty() ? DidYouMean(name, all) : ""));
  }
  return places;
}

absl::Status ArrowFiles::CheckColumns(
    const std::vector<std::string>& names) const {
  // The first column of each name that is more than nulls, and its file.
  std::map<std::string, std::pair<ArrowColumn, std::string>> known;
  for (const StoredFile& stored : files_) {
    ASSIGN_OR_RETURN(const ArrowFile file, ArrowFile::Open(library_, stored));
    ASSIGN_OR_RETURN(const std::vector<size_t> places,
                     Places(names, file, stored.path()));
    for (const size_t place : places) {
      const ArrowColumn& column = file.columns()[place];
      if (!column.type.is_readable()) {
        return absl::InvalidArgumentError(absl::StrCat(
            stored.path(), ": column \"", ShownText(column.name), "\" is ",
            column.type.name,
            ", which is not read; write it as numbers, strings, or lists of "
            "them"));
      }
      if (column.type.kind == ArrowType::Kind::kNull) continue;
      const auto [first, is_new] =
          known.emplace(column.name, std::pair(column, stored.path()));
      if (is_new || IsSameColumn(column.type, first->second.first.type)) {
        continue;
      }
      return TwoTypes(stored.path(), first->second.second, column,
                      first->second.first);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ArrowFiles::CommonColumns() const {
  // A column of each name that is more than nulls, if a file has one.
  std::map<std::string, std::optional<ArrowType>> common;
  std::vector<std::string> names;
  for (const StoredFile& stored : files_) {
    ASSIGN_OR_RETURN(const ArrowFile file, ArrowFile::Open(library_, stored));
    if (&stored == &files_.front()) {
      names = this->names();
      for (const std::string& name : names) common[name] = std::nullopt;
    }
    for (auto it = common.begin(); it != common.end();) {
      const std::vector<size_t> found = file.Find(it->first);
      it = found.size() == 1 &&
                   GoesWith(file.columns()[found.front()].type, it->second)
               ? std::next(it)
               : common.erase(it);
    }
  }
  std::erase_if(
      names, [&](const std::string& name) { return !common.contains(name); });
  return names;
}

absl::StatusOr<ArrowRecords> ArrowFiles::Convert(
    const std::vector<std::string>& names,
    const ConversionOptions& options) const {
  RecordStore store(options.memory);
  Conversion conversion(options, store);
  std::vector<std::string> paths;
  bool is_whole = true;
  for (const StoredFile& stored : files_) {
    ASSIGN_OR_RETURN(ArrowFile file, ArrowFile::Open(library_, stored));
    ASSIGN_OR_RETURN(const std::vector<size_t> places,
                     Places(names, file, stored.path()));
    ASSIGN_OR_RETURN(const bool is_whole_file,
                     conversion.AddFile(PlanOf(places, file), file));
    is_whole = is_whole && is_whole_file;
    RETURN_IF_ERROR(store.EndFile(stored.path()));
    paths.push_back(stored.path());
  }
  ASSIGN_OR_RETURN(Records records, store.Finish());
  if (records.size() != conversion.size()) {
    return absl::InternalError(absl::StrCat(
        paths.front(), ": ", conversion.size(), " records were written, and ",
        records.size(), " are there"));
  }
  if (!is_whole) records.MarkSample();
  ArrowRecords all(std::move(records));
  all.paths = std::move(paths);
  all.groups = std::move(conversion.groups());
  all.damaged = std::move(conversion.damaged());
  all.bytes = store.all_bytes();
  return all;
}

}  // namespace parasol
