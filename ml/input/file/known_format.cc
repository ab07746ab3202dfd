#include "ml/input/file/known_format.h"

#include <algorithm>
#include <cctype>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/crc32c.h"

namespace parasol {
namespace {

constexpr char kUnpack[] = "unpack it";
constexpr char kSaveAs[] = "save it as CSV or TFRecord";
constexpr char kAsParquet[] = "read it as `parquet`";
constexpr char kAsUtf8[] = "save it as UTF-8";

struct Signature {
  // `bytes` is a literal, whose last 0 is none of them.
  template <size_t kBytes>
  constexpr Signature(const char (&bytes)[kBytes], const char* is,
                      const char* to_do)
      : start(bytes, kBytes - 1), what(is), advice(to_do) {}

  absl::string_view start;
  const char* what;
  const char* advice;
};

// Beginnings that no CIFAR or IDX file has, but for chances that can be left
// alone. A TFRecord file may have them, and is known by its own.
constexpr Signature kSignatures[] = {
    {"PK\x03\x04", "a zip archive, as .xlsx and .npz are, too",
     "unpack it, save the table as CSV, or read an .npz as `array`"},
    {"PK\x05\x06", "an empty zip archive", "name the data"},
    {"PAR1", "a Parquet file", kAsParquet},
    {"PARE", "an encrypted Parquet file", "decrypt it"},
    {"ARROW1", "an Arrow file", kAsParquet},
    {"FEA1", "a Feather file of version 1", kSaveAs},
    {"Obj\x01", "an Avro file", kSaveAs},
    {"ORC", "an ORC file", kSaveAs},
    {"\x28\xb5\x2f\xfd", "packed by zstd", "unpack it, or pack it by gzip"},
    {"BZh", "packed by bzip2", "unpack it, or pack it by gzip"},
    {"\xfd"
     "7zXZ\0",
     "packed by xz", "unpack it, or pack it by gzip"},
    {"7z\xbc\xaf\x27\x1c", "a 7z archive", kUnpack},
    {"Rar!\x1a\x07", "a RAR archive", kUnpack},
    {"%PDF-", "a PDF document", "name the data"},
    {"\x89HDF\r\n\x1a\n", "an HDF5 file", kSaveAs},
    {"\x93NUMPY", "a NumPy array", "read it as `array`"},
    {"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Excel or Word file",
     "save the table as CSV"},
    {"SQLite format 3\0", "an SQLite database", "save the table as CSV"},
    {"\x89PNG\r\n\x1a\n", "a PNG picture",
     "pictures are read from IDX, CIFAR and TFRecord files"},
    {"\xff\xd8\xff", "a JPEG picture",
     "pictures are read from IDX, CIFAR and TFRecord files"},
    {"GIF8", "a GIF picture",
     "pictures are read from IDX, CIFAR and TFRecord files"},
    {"\x7f"
     "ELF",
     "a program", "name the data"},
    {"version https://git-lfs.github.com/spec",
     "a pointer of Git LFS, not the data", "fetch them with git lfs pull"},
};

// Beginnings that only lines of text can't have.
constexpr Signature kOfTexts[] = {
    {"\xff\xfe\0\0", "UTF-32", kAsUtf8},
    {"\0\0\xfe\xff", "UTF-32", kAsUtf8},
    {"\xff\xfe", "UTF-16", kAsUtf8},
    {"\xfe\xff", "UTF-16", kAsUtf8},
    {"\x1f\x8b", "packed by gzip, with a damaged header", "fetch it again"},
    {"\x1f\x9d", "packed by compress", "unpack it, or pack it by gzip"},
    {"\x04\x22\x4d\x18", "packed by lz4", "unpack it, or pack it by gzip"},
    {"\x80\x02", "a pickle of Python", kSaveAs},
    {"\x80\x03", "a pickle of Python", kSaveAs},
    {"\x80\x04\x95", "a pickle of Python", kSaveAs},
    {"\x80\x05\x95", "a pickle of Python", kSaveAs},
    {"\0\0\x08\x01", "IDX labels", "name it in idx.labels"},
    {"\0\0\x08\x03", "IDX images", "name it in idx.images"},
};

constexpr size_t kTarMagicAt = 257;
constexpr size_t kTfRecordLengthBytes = 8;
constexpr char kGzipMagic[] = "\x1f\x8b";
constexpr size_t kGzipMethodAt = 2;
constexpr char kGzipDeflate = 8;
constexpr size_t kGzipFlagsAt = 3;
constexpr uint8_t kGzipReservedFlags = 0xe0;
constexpr size_t kPairsLookedAt = 8;

std::string Described(const char* what, const char* advice) {
  return absl::StrCat("is ", what, "; ", advice);
}

// Returns true if the text is UTF-16 without a mark: every other byte is 0.
bool IsBareUtf16(absl::string_view start) {
  if (start.size() < 2 * kPairsLookedAt) return false;
  for (const size_t first : {0, 1}) {
    bool is_each = true;
    for (size_t i = 0; i < kPairsLookedAt; ++i) {
      is_each = is_each && start[2 * i + first] == '\0' &&
                start[2 * i + 1 - first] != '\0';
    }
    if (is_each) return true;
  }
  return false;
}

bool IsHtml(absl::string_view start) {
  start = absl::StripLeadingAsciiWhitespace(start);
  return absl::StartsWithIgnoreCase(start, "<!doctype html") ||
         absl::StartsWithIgnoreCase(start, "<html");
}

}  // namespace

bool HasTfRecordHeader(absl::string_view start) {
  if (start.size() < kTfRecordHeaderBytes) return false;
  uint32_t stored = 0;
  for (size_t i = kTfRecordHeaderBytes; i-- > kTfRecordLengthBytes;) {
    stored = stored << 8 | static_cast<uint8_t>(start[i]);
  }
  return stored == MaskCrc(Crc32cOf(start.substr(0, kTfRecordLengthBytes)));
}

bool IsGzip(absl::string_view start) {
  if (!absl::StartsWith(start, kGzipMagic)) return false;
  if (start.size() > kGzipMethodAt && start[kGzipMethodAt] != kGzipDeflate) {
    return false;
  }
  if (start.size() > kGzipFlagsAt &&
      (static_cast<uint8_t>(start[kGzipFlagsAt]) & kGzipReservedFlags) != 0) {
    return false;
  }
  return !HasTfRecordHeader(start);
}

std::string KnownFormat(absl::string_view start, bool is_text) {
  if (!is_text && HasTfRecordHeader(start)) return "";
  for (const Signature& signature : kSignatures) {
    if (!absl::StartsWith(start, signature.start)) continue;
    // A CSV file's first column may be called so.
    const bool is_word =
        std::all_of(signature.start.begin(), signature.start.end(),
                    [](unsigned char c) { return std::isalnum(c) != 0; });
    const bool goes_on_as_text =
        start.substr(0, 16).find_first_not_of(
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
            " \t\r\n,;|:._-\"'") == absl::string_view::npos;
    if (is_text && is_word && goes_on_as_text) continue;
    return Described(signature.what, signature.advice);
  }
  if (absl::StartsWith(start.substr(std::min(start.size(), kTarMagicAt)),
                       "ustar")) {
    return Described("a tar archive", kUnpack);
  }
  if (!is_text) return "";
  for (const Signature& signature : kOfTexts) {
    if (absl::StartsWith(start, signature.start)) {
      return Described(signature.what, signature.advice);
    }
  }
  if (IsBareUtf16(start)) return Described("UTF-16", kAsUtf8);
  if (IsHtml(start)) {
    return Described("a page of HTML, perhaps of a failed download",
                     "fetch the data again");
  }
  return "";
}

}  // namespace parasol
