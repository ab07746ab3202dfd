#ifndef PARASOL_ML_INPUT_TOPIC_SLICE_COPY_H_
#define PARASOL_ML_INPUT_TOPIC_SLICE_COPY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ml/input/file/temporary_file.h"
#include "ml/input/topic/topic_slice.h"
#include "proto/job.pb.h"

namespace parasol {

// A slice of a topic as a file of the data set's format, without a name in a
// folder: it is gone with its process. Whoever opens uri() reads it, for as
// long as this object lives.
class SliceCopy {
 public:
  // Has `file` stand for `uri`; of what this process has already, the file that
  // is there.
  SliceCopy(std::string uri, TemporaryFile file);
  SliceCopy(const SliceCopy&) = delete;
  SliceCopy& operator=(const SliceCopy&) = delete;
  ~SliceCopy();

  const std::string& uri() const { return uri_; }
  uint64_t bytes() const { return bytes_; }

 private:
  const std::string uri_;
  uint64_t bytes_ = 0;
};

// Returns a value as a file of a format has it, with its frame or line end.
//   DataLoss  it is no record of the format: says why.
using RecordFrame =
    std::function<absl::StatusOr<std::string>(absl::string_view value)>;

// Returns what frames the values of a topic of a data set; null: its format
// can't be a topic. Pure.
RecordFrame RecordFrameOf(const job::Dataset& dataset);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_TOPIC_SLICE_COPY_H_
