#ifndef PARASOL_ML_INPUT_INPUT_PIPELINE_H_
#define PARASOL_ML_INPUT_INPUT_PIPELINE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ml/input/feature/batch.h"
#include "ml/input/feature/model_inputs.h"
#include "ml/input/file/set_memory.h"
#include "proto/job.pb.h"

namespace parasol {

struct InputOptions {
  // Directory that the dataset's paths are relative to.
  std::string data_dir = {};
  // Seed of the order, and of random crops and flips.
  uint64_t seed = 0;
  // Share of the set that this reader gets: dataset.auto_shard defines how the
  // shares are made.
  int shard = 0;
  int num_shards = 1;  // Open() has memory for the shuffle buffers of so many
  // True if a new epoch, shuffled differently, follows each epoch; otherwise
  // Next() ends.
  bool repeat = false;
  // Number of the batch that Next() returns first, counted from 0 over all
  // epochs. It is the batch that call number first_batch, from 0, returns to a
  // reader that began with batch 0; batches of which corrupt records left
  // nothing count as well. Only with `repeat`. Costs drawing the epoch's
  // earlier examples, but not decoding them.
  int64_t first_batch = 0;
  // Batch::number counts an epoch as so many batches; 0: as many as it has.
  int64_t counted_per_epoch = 0;
  // True if the reader reads all `num_shards` shards, and Next() returns the
  // batches that SetNext() names; `shard`, `repeat` and `first_batch` then have
  // no effect. Batches are numbered from 0 over all epochs. An epoch has all
  // batches of shard 0, then all of shard 1, and so on.
  bool by_number = false;
  // True if Next() returns batches of which corrupt records left nothing, with
  // size 0; otherwise it passes over them. A reader by number returns them.
  bool empty_batches = false;
  // True if labels and weights are not read, and need not be there: examples
  // then have labels that mean nothing. Open() alone reads this.
  bool without_labels = false;
  // Bytes that are read of the files, for a sample, as
  // SetOptions::sample_bytes; 0: all. Open() alone reads this.
  int64_t sample_bytes = 0;
  // Columns of labels and masks of outputs that a part of a job's model lacks.
  // Only with `without_labels`: they need not be there, nor need the columns of
  // the outputs that it has. Open() alone reads this.
  std::vector<std::string> label_columns = {};
  // Tests choose it. Open() alone reads this.
  SetMemory memory = {};
};

// Reads, shuffles and batches a dataset for one model, decoding ahead on
// threads of its own. The contents of each batch depend on (files, dataset,
// model, options), but not on prefetch_batches or decode_threads. Next() is for
// one thread. A set that takes up to an eighth of the memory that is free is in
// memory: its files may be deleted once Open() has returned. Files of a larger
// one stay as they are while it is read.
class InputPipeline {
 public:
  // Reads the files and finds their records. Fields that are not set have their
  // defaults.
  //   NotFound          a file is missing: names it and the data_dir.
  //   DataLoss          a file is corrupt as a whole: gzip, IDX, the frame of
  //                     TFRecord, quotes of CSV that do not end, an incomplete
  //                     last record: names the file and the offset. All but the
  //                     first two are skipped like records.
  //   InvalidArgument   a file is of another format; the dataset is not set, a
  //                     setting is out of range, the shard would be empty, or
  //                     the data lacks something that an input of the model or
  //                     its loss needs; or there is no room on the disk for
  //                     what is unpacked.
  //   Unavailable       a file can't be read now.
  static absl::StatusOr<std::unique_ptr<InputPipeline>> Open(
      const job::Dataset& dataset, const ModelInputs& inputs,
      const InputOptions& options);
  virtual ~InputPipeline() = default;

  // Returns the number of examples of a set, with corrupt records; it may have
  // none. Keeps nothing open. Errors as for Open().
  static absl::StatusOr<int64_t> CountExamples(const job::Dataset& dataset,
                                               const ModelInputs& inputs,
                                               const InputOptions& options);

  // Opens another reader of the same examples, whose memory all readers share.
  // options.data_dir is not used.
  //   InvalidArgument  as for Open().
  virtual absl::StatusOr<std::unique_ptr<InputPipeline>> OpenAgain(
      const InputOptions& options) const = 0;

  // Number of examples in the whole set, over all shards, with corrupt records;
  // of a sample, of this.
  virtual int64_t total_examples() const = 0;

  // True if the files have more examples than InputOptions::sample_bytes.
  virtual bool is_sample() const { return false; }

  // Returns the number of examples of each shard when the set is split into
  // `num_shards`, with corrupt records.
  //   InvalidArgument  as for Open().
  virtual absl::StatusOr<std::vector<int64_t>> ShardSizes(
      int num_shards) const = 0;

  // Names the batches that the next calls of Next() return, in this order, for
  // a reader by number. They replace those that were named before and not
  // returned yet; what they have in common is not decoded again. A batch that
  // is far ahead of the last one of its shard, or before it, costs drawing the
  // examples in between, or from its epoch's start.
  virtual void SetNext(const std::vector<int64_t>& numbers) {}

  // Number of corrupt records that have been left out (on_corrupt SKIP), each
  // once in every epoch, by this reader and all others of the same examples,
  // closed ones included. Thread-safe.
  virtual int64_t skipped_records() const { return 0; }

  // Returns the next batch, or nullptr when the epoch is over (never with
  // `repeat` or by number). The last batch of an epoch may be smaller, and so
  // may one that had corrupt records. The batch is valid until the second next
  // call. Blocks while none is decoded. By number, SetNext() must have named a
  // batch that has not been returned.
  //   DataLoss  a record is corrupt, or its file has changed since it was
  //             opened: names the file and the offset (in the unpacked bytes;
  //             for a text the line, too); or, if corrupt records are skipped,
  //             all are corrupt.
  //   Unavailable  a file can't be read now: the disk refuses, or no descriptor
  //                is left. It is no corrupt record.
  // Every later call gives the same error.
  virtual absl::StatusOr<const Batch*> Next() = 0;
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_INPUT_PIPELINE_H_
