#include "ml/input/record/record_format.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace parasol {

FoundRecord FindRecord(const RecordFormat& format, const FilePart& part,
                       size_t at) {
  FoundRecord found = format.Find(part, at);
  if (found.length <= kMaxRecordBytes) return found;
  if (found.kind == FoundRecord::Kind::kWhole) {
    found.kind = FoundRecord::Kind::kBroken;
    found.what = absl::StrCat("a record of ", found.length, " bytes");
    found.length = 0;
  }
  found.length = std::min(found.length, kMaxRecordBytes);
  return found;
}

}  // namespace parasol
