#include "deploy/tool/predict_command.h"

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "base/process.h"
#include "base/status_macros.h"
#include "cluster/cluster_spec/compute_flags.h"
#include "deploy/tool/data_dir_flag.h"
#include "deploy/tool/job_flags.h"
#include "deploy/tool/model_flags.h"
#include "deploy/tool/output_flag.h"
#include "deploy/tool/prediction_run.h"
#include "deploy/tool/prediction_writer.h"

ABSL_FLAG(std::string, layer, "",
          "Layer whose outputs are written. Default: the model's outputs.");
ABSL_FLAG(std::string, shard, "0/1",
          "I/N: only part I, from 0, of N parts of the examples.");

namespace parasol {
namespace {

constexpr char kPredictUsage[] =
    "Writes what a checkpoint's model gives for each example of the job's eval "
    "data set, in the order of the data: the outputs of the last layer, before "
    "any sigmoid or softmax of the loss, or those of --layer. The data need no "
    "labels. A model with named outputs gives all of them: columns with a line "
    "of names in CSV, keys in JSON, features of tf.Examples.\n"
    "\n"
    "  parasol predict CKPT --data_dir=DIR "
    "--output=FILE.csv|.jsonl|.npy|.tfrecord\n"
    "\n"
    "  parasol predict /ckpt/mnist --data_dir=/data/mnist --output=mnist.npy\n"
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

absl::Status RunPredict(const std::vector<std::string>& arguments) {
  RETURN_IF_ERROR(RequireArguments(arguments, 1, "CKPT"));
  const std::string output = absl::GetFlag(FLAGS_output);
  if (output.empty()) {
    return absl::InvalidArgumentError("--output is missing; try --help");
  }
  PredictionRun::Options options = {.data_dir = absl::GetFlag(FLAGS_data_dir),
                                    .layer = absl::GetFlag(FLAGS_layer)};
  RETURN_IF_ERROR(CheckComputeFlags({.data_dir = options.data_dir}));
  ASSIGN_OR_RETURN(options.compute, ModelOptionsFromFlags());
  ASSIGN_OR_RETURN(std::tie(options.shard, options.num_shards),
                   ParseShard(absl::GetFlag(FLAGS_shard)));
  ASSIGN_OR_RETURN(const std::unique_ptr<PredictionRun> run,
                   PredictionRun::Open(
                       arguments[0], absl::GetFlag(FLAGS_set).values, options));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<PredictionWriter> writer,
      PredictionWriter::Create(output, run->width(), run->outputs(),
                               /*is_first=*/options.shard == 0));
  RETURN_IF_ERROR(run->Run([&writer](absl::Span<const float> outputs) {
    return writer->Append(outputs);
  }));
  return writer->Finish();
}

}  // namespace

Command PredictCommand() {
  return {.name = "predict",
          .summary = "writes a model's outputs for each example",
          .usage = kPredictUsage,
          .flags = {"data_dir", "device", "threads", "table_memory",
                    "table_dir", "set", "output", "layer", "shard"},
          .run = [](const std::vector<std::string>& arguments) {
            return ExitWith(RunPredict(arguments));
          }};
}

}  // namespace parasol
