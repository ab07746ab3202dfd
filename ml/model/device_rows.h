#ifndef PARASOL_ML_MODEL_DEVICE_ROWS_H_
#define PARASOL_ML_MODEL_DEVICE_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/work_helpers.h"
#include "ml/kernel/pass_argument.h"

namespace parasol {

// The rows of one table that a batch reads.
struct RowLookup {
  size_t table = 0;
  absl::Span<const uint64_t> hashes = {};  // RowHash() of distinct ids
  // The numbers that Probe() has written, as many as hashes; Find() changes
  // them.
  absl::Span<int32_t> probed = {};
  // Number of each row in `blocks`, in `probed` or elsewhere, if the rows are
  // on the device. Rows are there until the next call of Find().
  absl::Span<const int32_t> numbers = {};
  RowBlocks blocks = {};
  bool is_on_device = false;
};

// A table in which ids are looked up, and where Probe() writes.
struct RowProbe {
  size_t table = 0;
  int32_t* probed = nullptr;
};

// Tables whose rows are in the memory of a model's device. Tables are numbered
// as in the model. Not thread-safe, but for Probe().
class DeviceRows {
 public:
  virtual ~DeviceRows() = default;

  // The first step of a look-up, which does not change anything: looks up the
  // ids with the hashes `hashes`, number `first` and those behind it of a
  // batch, in `tables`, and writes what Find() wants to know of each to element
  // `first` of RowProbe::probed and those behind it. For several threads at
  // once.
  virtual void Probe(absl::Span<const uint64_t> hashes, size_t first,
                     absl::Span<const RowProbe> tables) const = 0;

  // Finds the rows of a batch, with one entry for each table, and makes those
  // that are missing: what brings rows to their places is on the copy-in stream
  // or the compute stream afterwards. Tables whose rows are in host memory,
  // from now on, are not on the device.
  //   ResourceExhausted  the device is full.
  //   Unavailable        the device was lost.
  virtual absl::Status Find(absl::Span<RowLookup> lookups) = 0;

  // Returns threads that may take parts of what is to be done for a batch.
  virtual WorkHelpers& helpers() = 0;
};

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_DEVICE_ROWS_H_
