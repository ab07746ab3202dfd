#ifndef PARASOL_STORAGE_TENSOR_FILES_TENSOR_WRITER_H_
#define PARASOL_STORAGE_TENSOR_FILES_TENSOR_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "storage/tensor_files/tensor.h"

namespace parasol {

// Writes tensors to files of one format, part after part, without holding any
// of them in memory. The parts are known before the first byte. Nothing has its
// final name before Finish(). Not thread-safe.
class TensorWriter {
 public:
  explicit TensorWriter(std::vector<TensorPart> parts)
      : parts_(std::move(parts)) {}
  virtual ~TensorWriter() = default;

  const std::vector<TensorPart>& parts() const { return parts_; }

  // Writes the next bytes of the parts' elements, which follow one another.
  // `bytes` are whole elements of one part.
  //   InvalidArgument  there are more bytes than the part has.
  //   any other        the file system refuses; as for storage/durable_file.h.
  absl::Status Append(absl::string_view bytes);

  // Writes the rest, makes all durable and gives it its names. Must be called
  // once, last.
  //   InvalidArgument  elements of a part are missing.
  absl::Status Finish();

 protected:
  // Steps of a format, called for each part in order.
  virtual absl::Status BeginPart(const TensorPart& part) = 0;
  virtual absl::Status WriteElements(absl::string_view bytes) = 0;
  virtual absl::Status EndPart(const TensorPart& part) = 0;
  virtual absl::Status Commit() = 0;

 private:
  // Begins the part at hand if that is not yet done, and ends it, and all empty
  // ones after it, once it has all its bytes.
  absl::Status BeginIfNew();
  absl::Status EndIfComplete();

  const std::vector<TensorPart> parts_;
  size_t next_ = 0;  // part at hand
  bool begun_ = false;
  uint64_t missing_ = 0;  // bytes of the part at hand
};

}  // namespace parasol

#endif  // PARASOL_STORAGE_TENSOR_FILES_TENSOR_WRITER_H_
