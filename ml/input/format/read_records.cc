#include "ml/input/format/read_records.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/status_macros.h"

namespace parasol {
namespace {

// A header of more bytes than a sample has room for is read nevertheless.
constexpr size_t kSampledHeaderBytes = 4 << 20;
constexpr size_t kMaxSampledHeaderBytes = 64 << 20;

// Adds the records of a file that is in memory.
absl::Status AddInMemory(DataFile file, bool is_text, RecordFormat& format,
                         Records& records) {
  const std::string path = file.path;
  std::optional<size_t> begin;
  for (size_t size = kSampledHeaderBytes;; size *= 4) {
    ASSIGN_OR_RETURN(begin, format.Begin(path, {.bytes = file.bytes,
                                                .file_bytes = file.bytes.size(),
                                                .is_cut = !file.is_whole}));
    if (begin.has_value() || size > kMaxSampledHeaderBytes) break;
    ASSIGN_OR_RETURN(file, ReadDataFile(path, is_text, size));
  }
  const bool is_cut = !file.is_whole;
  records.AddFile(path, std::move(file.bytes));
  if (begin.has_value()) records.AddAll(format, *begin, is_cut);
  return absl::OkStatus();
}

// Reads all files, or a sample of them. Returns nullopt if they have more than
// `most` bytes.
absl::StatusOr<std::optional<Records>> ReadIntoMemory(DataFiles files,
                                                      RecordFormat& format,
                                                      Records::Content content,
                                                      uint64_t most) {
  const bool is_text = content == Records::Content::kText;
  Records records(content);
  while (files.HasNext()) {
    ASSIGN_OR_RETURN(DataFile file, files.ReadNext(is_text, most));
    if (!files.is_limited()) {
      if (!file.is_whole) return std::nullopt;
      most -= file.bytes.size();
    }
    RETURN_IF_ERROR(AddInMemory(std::move(file), is_text, format, records));
  }
  if (files.is_sample()) records.MarkSample();
  return records;
}

}  // namespace

absl::StatusOr<Records> ReadRecords(DataFiles files,
                                    std::shared_ptr<RecordFormat> format,
                                    Records::Content content,
                                    const SetMemory& memory) {
  const uint64_t most = MostInMemory(memory);
  if (files.is_limited() || files.stored_bytes() <= most) {
    // Packed files show only when they are read whether they fit.
    ASSIGN_OR_RETURN(std::optional<Records> records,
                     ReadIntoMemory(files, *format, content, most));
    if (records.has_value()) return *std::move(records);
  }
  const bool is_text = content == Records::Content::kText;
  Records records(content, format, memory);
  StoredFiles stored_files;
  while (files.HasNext()) {
    ASSIGN_OR_RETURN(StoredFile file, files.OpenNext(is_text, stored_files));
    RETURN_IF_ERROR(records.AddStored(std::move(file)));
  }
  return records;
}

}  // namespace parasol
