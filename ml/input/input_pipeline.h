#ifndef PARASOL_ML_INPUT_INPUT_PIPELINE_H_
#define PARASOL_ML_INPUT_INPUT_PIPELINE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "ml/input/feature/batch.h"
#include "ml/input/feature/model_inputs.h"
#include "proto/job.pb.h"

namespace parasol {

struct InputOptions {
  // Directory that the dataset's paths are relative to.
  std::string data_dir;
  // Of the order, and of random crops and flips.
  uint64_t seed = 0;
  // Which share of the set this reader gets: dataset.auto_shard says how the
  // shares are made.
  int shard = 0;
  int num_shards = 1;
  // Start over, differently shuffled, at the end; otherwise Next() ends.
  bool repeat = false;
  // The batch that Next() gives first, counted from 0 over all passes: what
  // call number first_batch, from 0, gives to a reader that began with batch 0
  // (batches of which corrupt records left nothing count as well). Only with
  // `repeat`. Costs drawing the pass's earlier examples, not decoding them.
  int64_t first_batch = 0;
};

// Reads, shuffles and batches a dataset for one model, decoding ahead on
// threads of its own. What is in which batch depends on (files, dataset, model,
// options), but not on prefetch_batches nor decode_threads. Next() is for one
// thread. The set is in memory: the files may be gone once Open() has returned.
class InputPipeline {
 public:
  // Reads the files, and finds out where their records are. Fields that are not
  // set have their defaults.
  //   NotFound          a file is missing: names it and the data_dir.
  //   DataLoss          a file is corrupt as a whole: gzip, IDX, the frame of
  //                     TFRecord, quotes of CSV that do not end, an incomplete
  //                     last record: names the file and the offset. All but the
  //                     first two are skipped like records.
  //   InvalidArgument   the dataset is not set, a setting is out of range, the
  //                     shard would be empty, or an input of the model or its
  //                     loss asks for what the data has not got.
  static absl::StatusOr<std::unique_ptr<InputPipeline>> Open(
      const job::Dataset& dataset, const ModelInputs& inputs,
      const InputOptions& options);
  virtual ~InputPipeline() = default;

  // Another reader of the same examples, which are in memory once however many
  // readers they have. options.data_dir is not looked at.
  //   InvalidArgument  as for Open().
  virtual absl::StatusOr<std::unique_ptr<InputPipeline>> OpenAgain(
      const InputOptions& options) const = 0;

  // Examples in the whole set, over all shards; corrupt records count.
  virtual int64_t total_examples() const = 0;

  // Corrupt records that have been left out (on_corrupt SKIP), each once in
  // every pass, by this reader and all others of the same examples, closed ones
  // included. Thread-safe.
  virtual int64_t skipped_records() const { return 0; }

  // The next batch; the last one of a pass may be smaller, and so is one that
  // had corrupt records. It is the caller's until the second next call.
  // nullptr: the pass is over (never with `repeat`). Blocks while none is
  // decoded.
  //   DataLoss  a record is corrupt: names the file and the offset (of the
  //             unpacked bytes; of a text the line, too); or, where these are
  //             skipped, all are. Every later call gives the same error.
  virtual absl::StatusOr<const Batch*> Next() = 0;
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_INPUT_PIPELINE_H_
