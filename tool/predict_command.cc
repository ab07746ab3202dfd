#include "tool/predict_command.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/command_line.h"
#include "base/process.h"
#include "base/status_macros.h"
#include "cluster/cluster_spec/compute_flags.h"
#include "ml/input/format/csv_fields.h"
#include "tool/best_flag.h"
#include "tool/data_dir_flag.h"
#include "tool/job_flags.h"
#include "tool/model_flags.h"
#include "tool/output_flag.h"
#include "tool/prediction/prediction_form.h"
#include "tool/prediction/prediction_run.h"
#include "tool/prediction/prediction_writer.h"

ABSL_FLAG(std::string, layer, "",
          "Layer whose outputs are written. Default: the model's outputs.");
ABSL_FLAG(parasol::RepeatedFlag, keep, {},
          "Columns of the data that go along with the predictions, with commas "
          "between their names: id,name. May be given several times.");
ABSL_FLAG(bool, raw, false,
          "Writes the model's outputs before the sigmoid or softmax of its "
          "loss, in place of classes and probabilities.");
ABSL_FLAG(bool, all_probabilities, false,
          "Writes the probability of each class, too.");
ABSL_FLAG(std::string, shard, "0/1",
          "I/N: only part I, from 0, of N parts of the examples.");

namespace parasol {
namespace {

constexpr char kPredictUsage[] =
    "Writes the predictions of a checkpoint's model for each example of the "
    "job's eval data set, in the order of the data: the class, by its name "
    "where the job says it, and the probability; or the predicted number. The "
    "data need no labels. What a model with named outputs predicts has these "
    "names in front. In a .npy file are the probabilities of all classes.\n"
    "\n"
    "  parasol predict CKPT --data_dir=DIR "
    "--output=FILE.csv|.jsonl|.npy|.tfrecord\n"
    "\n"
    "CKPT is a checkpoint's directory, or one with many checkpoints, of which "
    "the newest is meant, or with --best (or as DIR/BEST) the one with the "
    "best evaluation.\n"
    "\n"
    "  parasol predict /ckpt/mnist --best --data_dir=/data/mnist "
    "--output=mnist.npy\n"
    "  parasol predict /ckpt/ads --data_dir=/data --keep=id,name "
    "--output=scores.csv\n"
    "  parasol predict /ckpt/ads --data_dir=/data "
    "--set=eval.csv.file[0]=new.csv "
    "--output=new.scores.csv\n"
    "  parasol predict /ckpt/ads --data_dir=/data --layer=hidden "
    "--output=embeddings.tfrecord\n"
    "  parasol predict /ckpt/ads --data_dir=/data --shard=0/4 "
    "--output=part-0.csv\n"
    "\n"
    "With --shard=0/4 to --shard=3/4 four processes share the work: their "
    "files, one after the other, are that of one process.\n"
    "\n"
    "Exit code: 0 done; 1 the checkpoint is damaged; 2 bad flags, data or job; "
    "138 try again.";

// The names of --keep, which are values of CSV: a name with a comma is in
// quotes.
absl::StatusOr<std::vector<std::string>> KeptColumns() {
  std::vector<std::string> kept;
  for (const std::string& names : absl::GetFlag(FLAGS_keep).values) {
    CsvFields fields(",");
    const auto* const values = fields.Split(names, SIZE_MAX);
    if (values == nullptr ||
        std::find(values->begin(), values->end(), "") != values->end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--keep=", names, ": is no list of columns, as id,name"));
    }
    for (const absl::string_view value : *values) kept.emplace_back(value);
  }
  return kept;
}

absl::StatusOr<PredictionForm::Options> FormFromFlags(
    const std::string& output) {
  ASSIGN_OR_RETURN(const PredictionFormat format, PredictionFormatOf(output));
  PredictionForm::Options form = {
      .raw = absl::GetFlag(FLAGS_raw),
      .as_array = format == PredictionFormat::kNpy,
      .all_probabilities = absl::GetFlag(FLAGS_all_probabilities)};
  ASSIGN_OR_RETURN(form.kept, KeptColumns());
  if (form.as_array && !form.kept.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--keep: an array has no texts; end --output=", output,
                     " with .csv, .jsonl or .tfrecord"));
  }
  const bool is_raw = form.raw || !absl::GetFlag(FLAGS_layer).empty();
  if (is_raw && form.all_probabilities) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--all_probabilities: with ", form.raw ? "--raw" : "--layer",
        " there are none; leave one of the two out"));
  }
  return form;
}

absl::Status RunPredict(const std::vector<std::string>& arguments) {
  RETURN_IF_ERROR(RequireArguments(arguments, 1, "CKPT"));
  const std::string output = absl::GetFlag(FLAGS_output);
  if (output.empty()) {
    return absl::InvalidArgumentError("--output is missing; try --help");
  }
  PredictionRun::Options options = {.data_dir = absl::GetFlag(FLAGS_data_dir),
                                    .layer = absl::GetFlag(FLAGS_layer)};
  RETURN_IF_ERROR(CheckComputeFlags({.data_dir = options.data_dir}));
  ASSIGN_OR_RETURN(options.form, FormFromFlags(output));
  ASSIGN_OR_RETURN(options.compute, ModelOptionsFromFlags());
  ASSIGN_OR_RETURN(std::tie(options.shard, options.num_shards),
                   ParseShard(absl::GetFlag(FLAGS_shard)));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<PredictionRun> run,
      PredictionRun::Open(CheckpointByFlag(arguments[0]),
                          absl::GetFlag(FLAGS_set).values, options));
  ASSIGN_OR_RETURN(const std::unique_ptr<PredictionWriter> writer,
                   PredictionWriter::Create(output, run->fields(),
                                            /*is_first=*/options.shard == 0));
  RETURN_IF_ERROR(run->Run([&writer](absl::Span<const PredictionValue> row) {
    return writer->Append(row);
  }));
  return writer->Finish();
}

}  // namespace

Command PredictCommand() {
  return {.name = "predict",
          .summary = "writes what a model predicts for each example",
          .usage = kPredictUsage,
          .flags = {"best", "data_dir", "data_cache_dir", "device", "threads",
                    "table_memory", "table_dir", "set", "output", "layer",
                    "shard", "keep", "raw", "all_probabilities"},
          .run = [](const std::vector<std::string>& arguments) {
            return ExitWith(RunPredict(arguments));
          }};
}

}  // namespace parasol
