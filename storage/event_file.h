#ifndef PARASOL_STORAGE_EVENT_FILE_H_
#define PARASOL_STORAGE_EVENT_FILE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "storage/event_histogram.h"

namespace parasol {

// Event files, which TensorBoard reads: TFRecord frames (ml/input/format has
// them for reading) of messages tensorflow.Event.

// Returns a frame: length:u64 mask(crc32c(length)):u32 bytes
// mask(crc32c(bytes)):u32, little-endian.
std::string FrameRecord(absl::string_view bytes);

// Return an Event as bytes: the one that begins each file; the mark that a run
// starts (again) at `step`, whose later events in older files TensorBoard then
// drops; the value of a scalar; and a histogram.
std::string VersionEvent(absl::Time now);
std::string StartEvent(absl::Time now, int64_t step);
std::string ScalarEvent(absl::Time now, int64_t step, absl::string_view tag,
                        double value);
std::string HistogramEvent(absl::Time now, int64_t step, absl::string_view tag,
                           const ValueHistogram& histogram);

// Appends events to an event file of its own in a directory. Not thread-safe.
class EventFile {
 public:
  using Scalars = std::vector<std::pair<std::string, double>>;
  using Histograms = std::vector<std::pair<std::string, ValueHistogram>>;
  // The end that added events survive: of the machine, or of the process alone.
  enum class Durability { kSynced, kWritten };
  // Bytes of a store's file from which on another one is begun.
  static constexpr size_t kLargeInStore = size_t{8} << 20;

  // The file is made, with its directory, when the first events are added.
  // `first_step`: the smallest step that will be added; later events of other
  // files in the directory do not count then. `name` tells the file from
  // others that begin in the same second: host and process. In a store, where
  // each synced addition writes the file anew, a large one is followed by
  // another.
  EventFile(std::string directory, std::string name, int64_t first_step);
  ~EventFile();

  // Adds the values at `step` with one write. Values that are not
  // finite are added as they are; histograms of no values are not added.
  absl::Status Add(int64_t step, const Scalars& scalars, absl::Time now) {
    return Add(step, scalars, Histograms(), now);
  }
  absl::Status Add(int64_t step, const Scalars& scalars,
                   const Histograms& histograms, absl::Time now,
                   Durability durability = Durability::kSynced);

 private:
  const std::string directory_;
  const std::string name_;
  int64_t first_step_;  // 0: a file has told it, or need not
  std::string path_;    // empty: not made yet
  size_t bytes_ = 0;    // size of the file
};

// Returns "<host>.<process>" of this process.
std::string EventFileName();

}  // namespace parasol

#endif  // PARASOL_STORAGE_EVENT_FILE_H_
