#include "ml/input/topic/slice_copy.h"

#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "base/crc32c.h"
#include "ml/input/format/csv_fields.h"
#include "ml/input/format/csv_format.h"
#include "ml/input/object/object_cache.h"

namespace parasol {
namespace {

// The copies of this process. Tasks of a test share it.
struct SharedSlices {
  struct SharedSlice {
    TemporaryFile file;
    int users = 0;
  };

  absl::Mutex mu;
  std::map<std::string, SharedSlice> by_uri ABSL_GUARDED_BY(mu);
};

SharedSlices& SlicesOfProcess() {
  static auto* const copies = new SharedSlices;
  return *copies;
}

std::string LittleEndian(uint64_t number, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i, number >>= 8) {
    text += static_cast<char>(number);
  }
  return text;
}

// Returns a record of a TFRecord file.
std::string Framed(absl::string_view value) {
  const std::string length = LittleEndian(value.size(), sizeof(uint64_t));
  const auto check = [](absl::string_view bytes) {
    return LittleEndian(MaskCrc(Crc32cOf(bytes)), sizeof(uint32_t));
  };
  return absl::StrCat(length, check(length), value, check(value));
}

absl::StatusOr<std::string> AsLine(absl::string_view value) {
  if (absl::ConsumeSuffix(&value, "\n")) absl::ConsumeSuffix(&value, "\r");
  if (absl::StrContains(value, '\n')) {
    return absl::DataLossError("the value has more than one line");
  }
  return absl::StrCat(value, "\n");
}

// A value whose quotes do not end would take the ones behind it with it.
absl::StatusOr<std::string> AsCsvLine(absl::string_view value,
                                      absl::string_view delimiter) {
  absl::StatusOr<std::string> line = AsLine(value);
  if (!line.ok()) return line;
  const CsvRecordEnd end = EndOfCsvRecord(*line, delimiter);
  if (end.kind == CsvRecordEnd::Kind::kWhole && end.size + 1 == line->size()) {
    return line;
  }
  return absl::DataLossError("the value's quotes are wrong");
}

}  // namespace

SliceCopy::SliceCopy(std::string uri, TemporaryFile file)
    : uri_(std::move(uri)) {
  SharedSlices& copies = SlicesOfProcess();
  const absl::MutexLock lock(&copies.mu);
  const auto [copy, is_new] = copies.by_uri.try_emplace(
      uri_, SharedSlices::SharedSlice{std::move(file)});
  ++copy->second.users;
  const TemporaryFile& kept = copy->second.file;
  bytes_ = kept.size();
  if (!is_new) return;
  ObjectCache::OfProcess().Lend(
      uri_, absl::StrCat("/proc/self/fd/", kept.descriptor()), bytes_);
}

SliceCopy::~SliceCopy() {
  SharedSlices& copies = SlicesOfProcess();
  const absl::MutexLock lock(&copies.mu);
  const auto copy = copies.by_uri.find(uri_);
  if (--copy->second.users > 0) return;
  ObjectCache::OfProcess().TakeBack(uri_);
  copies.by_uri.erase(copy);
}

RecordFrame RecordFrameOf(const job::Dataset& dataset) {
  switch (dataset.kind_case()) {
    case job::Dataset::kTfrecord:
      return [](absl::string_view value) { return Framed(value); };
    case job::Dataset::kCsv:
      return
          [delimiter = CsvDelimiter(dataset.csv())](absl::string_view value) {
            return AsCsvLine(value, delimiter);
          };
    case job::Dataset::kLibsvm:
    case job::Dataset::kCriteo:
    case job::Dataset::kRatings:
      return AsLine;
    default:
      return nullptr;
  }
}

}  // namespace parasol
