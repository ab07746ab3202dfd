#ifndef PARASOL_ML_INPUT_INPUT_PIPELINE_H_
#define PARASOL_ML_INPUT_INPUT_PIPELINE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "ml/input/batch.h"
#include "proto/job.pb.h"

namespace parasol {

struct InputOptions {
  // Directory that the dataset's paths are relative to.
  std::string data_dir;
  uint64_t seed = 0;
  // This reader gets examples `shard`, `shard + num_shards`, … of the set.
  int shard = 0;
  int num_shards = 1;
  // Start over, differently shuffled, at the end; otherwise Next() ends.
  bool repeat = false;
  // The batch that Next() gives first, counted from 0 over all passes: what
  // call number first_batch, from 0, gives to a reader that began with batch 0.
  // Only with `repeat`. Costs drawing the pass's earlier examples, not decoding
  // them.
  int64_t first_batch = 0;
};

// Reads, shuffles and batches a dataset, decoding ahead on a thread of its own.
// The order depends on (files, batch_size, shuffle_buffer, options) only.
// Next() is for one thread. The files may be gone once Open() has returned.
class InputPipeline {
 public:
  // Reads the files and checks all of their bytes.
  //   NotFound          a file is missing: names it and the data_dir.
  //   DataLoss          a file is corrupt, or images and labels differ in
  //                     number: names the file and the offset.
  //   InvalidArgument   the dataset is not set, a setting is out of range, or
  //                     the shard would be empty.
  static absl::StatusOr<std::unique_ptr<InputPipeline>> Open(
      const job::Dataset& dataset, const InputOptions& options);
  virtual ~InputPipeline() = default;

  // Another reader of the same examples, which are in memory once however many
  // readers they have. options.data_dir is not looked at.
  //   InvalidArgument  as for Open().
  virtual absl::StatusOr<std::unique_ptr<InputPipeline>> OpenAgain(
      const InputOptions& options) const = 0;

  // Examples in the whole set, over all shards.
  virtual int64_t total_examples() const = 0;
  // Of one example: {28, 28}.
  virtual const std::vector<int64_t>& example_shape() const = 0;
  // Largest label + 1.
  virtual int64_t num_classes() const = 0;

  // The next batch; the last one of a pass may be smaller. It is the caller's
  // until the second next call. nullptr: the pass is over (never with
  // `repeat`). Blocks while none is decoded.
  //   DataLoss  a format that is read as it goes turns out corrupt: names the
  //             file and the offset. (IDX is read whole by Open().)
  virtual absl::StatusOr<const Batch*> Next() = 0;
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_INPUT_PIPELINE_H_
