#ifndef PARASOL_STORAGE_CHECKED_MESSAGE_H_
#define PARASOL_STORAGE_CHECKED_MESSAGE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// A serialised message with a magic number, its length and a checksum: the form
// of the files MANIFEST and CHIEF. storage/FORMAT.md has the grammar.
namespace parasol {

// Limit on a payload, and on the whole file.
inline constexpr size_t kMaxCheckedPayloadBytes = 64 << 20;
inline constexpr size_t kMaxCheckedBytes = kMaxCheckedPayloadBytes + 20;

// `magic` has 8 bytes.
std::string EncodeChecked(absl::string_view magic, absl::string_view payload);

// Returns the payload, which is a part of `bytes`.
//   DataLoss  not what EncodeChecked() gives with this magic.
absl::StatusOr<absl::string_view> DecodeChecked(absl::string_view magic,
                                                absl::string_view bytes);

}  // namespace parasol

#endif  // PARASOL_STORAGE_CHECKED_MESSAGE_H_
