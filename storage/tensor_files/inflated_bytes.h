#ifndef PARASOL_STORAGE_TENSOR_FILES_INFLATED_BYTES_H_
#define PARASOL_STORAGE_TENSOR_FILES_INFLATED_BYTES_H_

#include <zlib.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "storage/tensor_files/sized_file.h"

namespace parasol {

// The bytes that a deflated range of a file becomes, read in order. Reading
// back begins anew. Not thread-safe.
class InflatedBytes {
 public:
  // `file` must outlive this object.
  InflatedBytes(const SizedFile& file, uint64_t begin, uint64_t count)
      : file_(file), begin_(begin), end_(begin + count) {}
  ~InflatedBytes();
  InflatedBytes(const InflatedBytes&) = delete;
  InflatedBytes& operator=(const InflatedBytes&) = delete;

  // Fills `out` with the bytes from `offset` on.
  //   DataLoss     the range is damaged, or becomes fewer bytes.
  //   Unavailable  the file system refuses.
  absl::Status Read(uint64_t offset, absl::Span<char> out);

 private:
  void Start();
  void Stop();
  absl::Status Next(absl::Span<char> out);
  absl::Status Refill();

  const SizedFile& file_;
  const uint64_t begin_;
  const uint64_t end_;
  bool started_ = false;
  z_stream stream_ = {};
  std::string input_ = {};
  uint64_t next_input_ = 0;  // first byte of the file that is not in input_
  uint64_t next_ = 0;        // number of the next byte that Next() gives
};

}  // namespace parasol

#endif  // PARASOL_STORAGE_TENSOR_FILES_INFLATED_BYTES_H_
