#include "ml/input/input_pipeline.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "ml/input/batch_decoder.h"
#include "ml/input/batch_order.h"
#include "ml/input/feature/model_inputs.h"
#include "ml/input/format/array_set.h"
#include "ml/input/format/csv_set.h"
#include "ml/input/format/custom_source.h"
#include "ml/input/format/example_set.h"
#include "ml/input/format/image_set.h"
#include "ml/input/format/libsvm_set.h"
#include "ml/input/format/parquet_set.h"
#include "ml/input/format/tfrecord_set.h"
#include "ml/input/input_shard.h"

namespace parasol {
namespace {

constexpr int kMaxPrefetchBatches = 1024;
constexpr int kMaxDecodeThreads = 256;
constexpr int kDefaultDecodeThreads = 2;

int DecodeThreads(const job::Dataset& dataset) {
  return dataset.has_decode_threads() ? dataset.decode_threads()
                                      : kDefaultDecodeThreads;
}

template <typename Format>
std::string FirstFile(const Format& format) {
  return format.file_size() > 0 ? ShownText(format.file(0)) : "the data";
}

// The first of the files that the job names for the set.
std::string FirstFileOf(const job::Dataset& dataset) {
  switch (dataset.kind_case()) {
    case job::Dataset::kIdx:
      return ShownText(dataset.idx().images());
    case job::Dataset::kCifar:
      return FirstFile(dataset.cifar());
    case job::Dataset::kLibsvm:
      return FirstFile(dataset.libsvm());
    case job::Dataset::kCsv:
      return FirstFile(dataset.csv());
    case job::Dataset::kCriteo:
      return FirstFile(dataset.criteo());
    case job::Dataset::kRatings:
      return FirstFile(dataset.ratings());
    case job::Dataset::kTfrecord:
      return FirstFile(dataset.tfrecord());
    case job::Dataset::kCustom:
      return FirstFile(dataset.custom());
    case job::Dataset::kArray:
      return FirstFile(dataset.array());
    case job::Dataset::kParquet:
      return FirstFile(dataset.parquet());
    case job::Dataset::KIND_NOT_SET:
      break;
  }
  return "the data";
}

bool SkipsCorrupt(const job::Dataset& dataset) {
  return dataset.on_corrupt() == job::Dataset::SKIP;
}

// State that all readers of a set share.
struct OpenSet {
  OpenSet(std::shared_ptr<const ExampleSet> all, Selection selected,
          ModelInputs wanted, const job::Dataset& spec)
      : examples(std::move(all)),
        selection(std::move(selected)),
        inputs(std::move(wanted)),
        dataset(spec) {}

  std::shared_ptr<const ExampleSet> examples;
  Selection selection;
  ModelInputs inputs;
  job::Dataset dataset;
  mutable std::atomic<int64_t> skipped = 0;
};

class Pipeline final : public InputPipeline {
 public:
  Pipeline(std::shared_ptr<const OpenSet> set,
           const std::vector<InputShard>& shards, const InputOptions& options)
      : set_(std::move(set)),
        decoder_(*set_->examples, set_->inputs,
                 BatchOrder(set_->selection, shards,
                            {.batch_size = set_->dataset.batch_size(),
                             .repeat = options.repeat,
                             .first_batch = options.first_batch,
                             .counted_per_epoch = options.counted_per_epoch}),
                 DecodingOf(set_->dataset, shards.front(), options),
                 set_->skipped) {}

  static absl::StatusOr<std::unique_ptr<InputPipeline>> Open(
      std::shared_ptr<const OpenSet> set, const InputOptions& options);

  absl::StatusOr<std::unique_ptr<InputPipeline>> OpenAgain(
      const InputOptions& options) const override {
    return Open(set_, options);
  }

  int64_t total_examples() const override { return set_->selection.size(); }
  bool is_sample() const override { return set_->examples->is_sample(); }
  absl::StatusOr<std::vector<int64_t>> ShardSizes(
      int num_shards) const override;
  void SetNext(const std::vector<int64_t>& numbers) override {
    decoder_.SetNext(numbers);
  }
  int64_t skipped_records() const override { return set_->skipped; }
  absl::StatusOr<const Batch*> Next() override { return decoder_.Next(); }

 private:
  static BatchDecoder::Options DecodingOf(const job::Dataset& dataset,
                                          const InputShard& shard,
                                          const InputOptions& options) {
    const int threads = DecodeThreads(dataset);
    return {.threads = threads,
            .ahead = std::max(threads, dataset.prefetch_batches()),
            .shard = options.by_number ? 0 : options.shard,
            .seed = shard.order().seed,
            .skip_corrupt = SkipsCorrupt(dataset),
            .by_number = options.by_number,
            .empty_batches = options.by_number || options.empty_batches};
  }

  const std::shared_ptr<const OpenSet> set_;
  BatchDecoder decoder_;
};

absl::Status RequireInRange(absl::string_view field, int64_t value, int64_t low,
                            int64_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      field, " is ", value, "; it must be in ", low, " to ", high));
}

absl::Status CheckSettings(const job::Dataset& dataset,
                           const InputOptions& options) {
  if (dataset.batch_size() < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "batch_size is ", dataset.batch_size(), "; it must be at least 1"));
  }
  if (dataset.shuffle_buffer() < 0) {
    return absl::InvalidArgumentError(absl::StrCat("shuffle_buffer is ",
                                                   dataset.shuffle_buffer(),
                                                   "; it must be at least 0"));
  }
  RETURN_IF_ERROR(RequireInRange("prefetch_batches", dataset.prefetch_batches(),
                                 0, kMaxPrefetchBatches));
  RETURN_IF_ERROR(RequireInRange("decode_threads", DecodeThreads(dataset), 1,
                                 kMaxDecodeThreads));
  if (options.num_shards < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "num_shards is ", options.num_shards, "; it must be at least 1"));
  }
  if (options.first_batch < 0 || (options.first_batch > 0 && !options.repeat)) {
    return absl::InvalidArgumentError(
        absl::StrCat("first_batch is ", options.first_batch,
                     "; without repeat it must be 0, with it at least that"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<InputPipeline>> Pipeline::Open(
    std::shared_ptr<const OpenSet> set, const InputOptions& options) {
  RETURN_IF_ERROR(CheckSettings(set->dataset, options));
  const int first = options.by_number ? 0 : options.shard;
  const int end = options.by_number ? options.num_shards : first + 1;
  std::vector<InputShard> shards;
  for (int shard = first; shard < end; ++shard) {
    ASSIGN_OR_RETURN(
        InputShard created,
        InputShard::Create(set->selection, set->dataset.auto_shard(),
                           {.shard = shard,
                            .num_shards = options.num_shards,
                            .shuffle_buffer = set->dataset.shuffle_buffer(),
                            .seed = options.seed}),
        _ << FirstFileOf(set->dataset));
    shards.push_back(std::move(created));
  }
  return std::make_unique<Pipeline>(std::move(set), shards, options);
}

absl::StatusOr<std::vector<int64_t>> Pipeline::ShardSizes(
    int num_shards) const {
  std::vector<int64_t> sizes;
  for (int shard = 0; shard < num_shards; ++shard) {
    ASSIGN_OR_RETURN(
        const InputShard created,
        InputShard::Create(set_->selection, set_->dataset.auto_shard(),
                           {.shard = shard, .num_shards = num_shards}));
    sizes.push_back(created.size());
  }
  return sizes;
}

// Number of records of the set among which the examples lie that the shuffle
// buffers of a process have: between a reader's examples are other replicas'
// ones, whose readers the process may have, too, and what the split leaves out.
int64_t RecordsSpanned(const job::Dataset& dataset,
                       const InputOptions& options) {
  constexpr auto kMost = static_cast<double>(int64_t{1} << 62);
  const job::Split& split = dataset.split();
  const double selected =
      std::min(1.0, split.has_to() ? split.to() : 1) - split.from();
  auto records = static_cast<double>(dataset.shuffle_buffer());
  if (selected > 0 && selected < 1) records /= selected;
  if (!options.by_number && dataset.auto_shard() != job::Dataset::OFF) {
    records *= options.num_shards;
  }
  return static_cast<int64_t>(std::min(records, kMost));
}

absl::StatusOr<std::shared_ptr<const ExampleSet>> OpenFormat(
    const job::Dataset& dataset, const SetOptions& options) {
  if (dataset.has_image() && !dataset.has_idx() && !dataset.has_cifar()) {
    return absl::InvalidArgumentError(
        "image is set, but only idx and cifar have images");
  }
  switch (dataset.kind_case()) {
    case job::Dataset::kIdx:
      return OpenIdxSet(dataset.idx(), dataset.image(), options);
    case job::Dataset::kCifar:
      return OpenCifarSet(dataset.cifar(), dataset.image(), options);
    case job::Dataset::kLibsvm:
      return OpenLibsvmSet(dataset.libsvm(), options);
    case job::Dataset::kCsv:
      return OpenCsvSet(dataset.csv(), "csv", options);
    case job::Dataset::kCriteo:
      return OpenCsvSet(CsvOf(dataset.criteo()), "criteo", options);
    case job::Dataset::kRatings:
      return OpenCsvSet(CsvOf(dataset.ratings()), "ratings", options);
    case job::Dataset::kTfrecord:
      return OpenTfRecordSet(dataset.tfrecord(), options);
    case job::Dataset::kArray:
      return OpenArraySet(dataset.array(), options);
    case job::Dataset::kParquet:
      return OpenParquetSet(dataset.parquet(), options);
    case job::Dataset::kCustom:
      return OpenCustomSet(dataset.custom(), options);
    case job::Dataset::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "dataset is not set: choose idx, cifar, libsvm, csv, criteo, ratings, "
      "tfrecord, array, parquet or custom");
}

absl::StatusOr<std::shared_ptr<const ExampleSet>> OpenExamples(
    const job::Dataset& dataset, const SetOptions& options) {
  try {
    return OpenFormat(dataset, options);
  } catch (const std::bad_alloc&) {
    return absl::InvalidArgumentError(
        "no memory for the examples; use a machine with more memory, or less "
        "data");
  }
}

// Opens the examples of a data set whose settings are checked.
absl::StatusOr<std::shared_ptr<const ExampleSet>> OpenExamplesOf(
    const job::Dataset& dataset, const ModelInputs& inputs,
    const InputOptions& options) {
  SetMemory memory = options.memory;
  memory.shuffled = RecordsSpanned(dataset, options);
  return OpenExamples(dataset, {.data_dir = options.data_dir,
                                .inputs = inputs,
                                .sample_bytes = options.sample_bytes,
                                .skip_corrupt = SkipsCorrupt(dataset),
                                .without_labels = options.without_labels,
                                .label_columns = options.label_columns,
                                .memory = memory});
}

}  // namespace

absl::StatusOr<int64_t> InputPipeline::CountExamples(
    const job::Dataset& dataset, const ModelInputs& inputs,
    const InputOptions& options) {
  RETURN_IF_ERROR(CheckSettings(dataset, options));
  ASSIGN_OR_RETURN(const std::shared_ptr<const ExampleSet> examples,
                   OpenExamplesOf(dataset, inputs, options));
  return Selection(examples->file_starts(),
                   dataset.has_split() ? &dataset.split() : nullptr)
      .size();
}

absl::StatusOr<std::unique_ptr<InputPipeline>> InputPipeline::Open(
    const job::Dataset& dataset, const ModelInputs& inputs,
    const InputOptions& options) {
  RETURN_IF_ERROR(CheckSettings(dataset, options));
  ASSIGN_OR_RETURN(std::shared_ptr<const ExampleSet> examples,
                   OpenExamplesOf(dataset, inputs, options));
  Selection selection(examples->file_starts(),
                      dataset.has_split() ? &dataset.split() : nullptr);
  return Pipeline::Open(
      std::make_shared<const OpenSet>(std::move(examples), std::move(selection),
                                      inputs, dataset),
      options);
}

}  // namespace parasol
