#include "ml/input/record/fixed_format.h"

#include "absl/strings/str_cat.h"

namespace parasol {

absl::StatusOr<std::optional<size_t>> FixedFormat::Begin(
    const std::string& /*path*/, const FilePart& /*part*/) {
  return std::optional<size_t>(0);
}

FoundRecord FixedFormat::Find(const FilePart& part, size_t at) const {
  const size_t rest = part.file_bytes - at;
  if (rest >= record_bytes_) {
    return {.kind = FoundRecord::Kind::kWhole,
            .offset = at,
            .length = record_bytes_,
            .next = at + record_bytes_};
  }
  if (part.is_cut) return {.kind = FoundRecord::Kind::kCutOff};
  return {.kind = FoundRecord::Kind::kBroken,
          .offset = at,
          .length = rest,
          .next = part.file_bytes,
          .what = absl::StrCat("ends ", rest, " bytes into a record of ",
                               record_bytes_)};
}

}  // namespace parasol
