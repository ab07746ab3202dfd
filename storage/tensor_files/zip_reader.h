#ifndef PARASOL_STORAGE_TENSOR_FILES_ZIP_READER_H_
#define PARASOL_STORAGE_TENSOR_FILES_ZIP_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "storage/tensor_files/inflated_bytes.h"
#include "storage/tensor_files/sized_file.h"

namespace parasol {

// Reads members of a ZIP archive, stored or deflated, piece by piece. Not
// thread-safe.
class ZipReader {
 public:
  struct Member {
    std::string name;
    uint64_t size = 0;
  };

  // Opens the archive and reads its directory.
  //   NotFound     there is no such file.
  //   DataLoss     it is no ZIP archive, its directory is damaged, or members
  //                share bytes.
  //   Unavailable  the file system refuses.
  static absl::StatusOr<ZipReader> Open(const std::string& path);

  // The members in the order of the archive's directory.
  const std::vector<Member>& members() const { return members_; }

  // Fills `out` with a member's bytes from `offset` on. Its checksum is
  // compared once it was read from its first byte to its last one, in order.
  //   DataLoss  the archive is damaged; the message names the member.
  //   InvalidArgument  the member is encrypted, or compressed in another way.
  //   Unavailable      the file system refuses.
  absl::Status Read(size_t member, uint64_t offset, absl::Span<char> out);

  // Returns the offset in the archive of a member's first byte; nullopt: it is
  // compressed. Errors as for Read().
  absl::StatusOr<std::optional<uint64_t>> OffsetInFile(size_t member);

  // Frees the memory that reading a deflated member takes, about 100 KB, until
  // it is read again.
  void Release(size_t member);

 private:
  // A member's place in the archive, and how far it was read.
  struct Place {
    uint16_t flags = 0;
    uint16_t method = 0;
    uint32_t crc = 0;
    uint64_t stored_bytes = 0;
    uint64_t local_header = 0;
    uint64_t data = 0;     // first byte; 0: the local header was not read yet
    uint64_t checked = 0;  // bytes in front that crc_so_far is of
    uint32_t crc_so_far = 0;
    std::unique_ptr<InflatedBytes> inflated = nullptr;  // null unless deflated
  };

  explicit ZipReader(SizedFile file)
      : file_(std::make_unique<const SizedFile>(std::move(file))) {}
  absl::Status ReadDirectory();
  absl::StatusOr<std::pair<uint64_t, uint64_t>> FindDirectory() const;
  // Reads the record at the front of `directory`, and removes it.
  absl::Status ReadRecord(absl::string_view& directory);
  absl::Status CheckReadable(size_t member) const;
  absl::Status Locate(Place& place) const;
  absl::Status ReadBytes(Place& place, uint64_t offset,
                         absl::Span<char> out) const;
  // Adds bytes that follow those before to the checksum, and compares it after
  // the last ones.
  absl::Status CheckCrc(size_t member, absl::Span<const char> bytes);
  absl::Status Damaged(absl::string_view what) const;

  std::unique_ptr<const SizedFile> file_;  // places_ refer to it
  std::vector<Member> members_;
  std::vector<Place> places_;  // order of `members_`
};

}  // namespace parasol

#endif  // PARASOL_STORAGE_TENSOR_FILES_ZIP_READER_H_
