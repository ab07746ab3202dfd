#ifndef PARASOL_ML_INPUT_RECORD_RECORD_FORMAT_H_
#define PARASOL_ML_INPUT_RECORD_RECORD_FORMAT_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace parasol {

// Bytes of a data set's file, unpacked: all, or some of them.
struct FilePart {
  absl::string_view bytes = {};
  size_t offset = 0;      // offset of the bytes in the file
  size_t file_bytes = 0;  // size of the file; a sample ends there
  bool is_cut = false;    // a sample: the file may go on behind file_bytes

  // Returns the bytes from the file's offset `at` on, at most all of them.
  absl::string_view From(size_t at) const { return bytes.substr(at - offset); }
  size_t end() const { return offset + bytes.size(); }
  // True if nothing follows the bytes.
  bool HasEnd() const { return !is_cut && end() == file_bytes; }
};

// The record, or something else, at a place of a file.
struct FoundRecord {
  enum class Kind {
    kWhole,
    kBroken,
    kNone,    // nothing that is a record: a comment, a blank line
    kCutOff,  // only the bytes behind the part's can tell
  };
  Kind kind = Kind::kCutOff;
  // The record, by offsets in the file. The bytes of kWhole may go on behind
  // the part's.
  size_t offset = 0;
  size_t length = 0;
  size_t next = 0;        // place to go on at; none for kCutOff
  std::string what = {};  // why it is broken
};

// How the records of a format's files are found: once from a file's start to
// its end, and again in parts of it. What is found depends on the file's bytes
// only, not on which part has them.
class RecordFormat {
 public:
  virtual ~RecordFormat() = default;

  // Returns the offset behind what stands before the first record, which `part`
  // begins with; nullopt: the part is too short to tell, and has no end.
  // Errors are the format's. For one thread.
  virtual absl::StatusOr<std::optional<size_t>> Begin(const std::string& path,
                                                      const FilePart& part) = 0;

  // Returns what stands at `at`, where Begin() or a record before it ended, and
  // which is below file_bytes. Thread-safe.
  virtual FoundRecord Find(const FilePart& part, size_t at) const = 0;
};

// Returns what RecordFormat::Find() does, but for records of more than
// kMaxRecordBytes, which are broken.
FoundRecord FindRecord(const RecordFormat& format, const FilePart& part,
                       size_t at);
inline constexpr size_t kMaxRecordBytes = size_t{1} << 30;

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_RECORD_RECORD_FORMAT_H_
