#ifndef PARASOL_STORAGE_TENSOR_FILES_ZIP_WRITER_H_
#define PARASOL_STORAGE_TENSOR_FILES_ZIP_WRITER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/tensor_files/staged_file.h"

namespace parasol {

// Writes a ZIP archive of members that are stored, not compressed. Sizes,
// offsets and counts that do not fit the old fields are in the fields of 64
// bits. Equal members give equal bytes. Fails as StagedFile does.
class ZipWriter {
 public:
  struct Options {
    // Sizes and offsets from this on are written with 64 bits; a test sets less
    // than the format's limit.
    uint64_t first_64_bit = 0xffffffff;
  };

  static absl::StatusOr<ZipWriter> Create(const std::string& path,
                                          Options options);

  // Begins a member of `size` bytes; its name has less than 65,536.
  absl::Status BeginMember(const std::string& name, uint64_t size);
  absl::Status Append(absl::string_view bytes);
  // Ends the member, which has all its bytes.
  absl::Status EndMember();

  // Writes the directory of all members, and commits the file.
  absl::Status Finish();

 private:
  struct Member {
    std::string name;
    uint64_t size = 0;
    uint64_t offset = 0;
    uint32_t crc = 0;
  };

  ZipWriter(StagedFile file, Options options)
      : file_(std::move(file)), options_(options) {}
  bool Is64(uint64_t value) const { return value >= options_.first_64_bit; }
  std::string CentralRecord(const Member& member) const;
  std::string EndRecords(uint64_t directory, uint64_t bytes) const;

  StagedFile file_;
  Options options_;
  std::vector<Member> members_;
};

}  // namespace parasol

#endif  // PARASOL_STORAGE_TENSOR_FILES_ZIP_WRITER_H_
