#include "tool/import_command.h"

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/process.h"
#include "base/status_macros.h"
#include "cluster/job/defaults.h"
#include "cluster/job/evaluation_policy.h"
#include "cluster/job/job_file.h"
#include "ml/input/object/object_cache.h"
#include "ml/input/object/object_uri.h"
#include "tool/data_dir_flag.h"
#include "tool/exchange/import.h"
#include "tool/format_flag.h"
#include "tool/job_flags.h"

ABSL_FLAG(std::string, job, "",
          "The job: a textproto. Empty: PATH.job.textproto, which an export "
          "has written.");
ABSL_FLAG(std::string, checkpoint_dir, "",
          "The job's directory of checkpoints; it has none yet.");
ABSL_FLAG(std::optional<int64_t>, step, std::nullopt,
          "How many steps the model has been trained for. Default: the tensor "
          "global_step, or the optimizer's iterations, or 0.");
ABSL_FLAG(bool, allow_surplus, false,
          "Leaves out tensors that the job does not have.");

namespace parasol {
namespace {

constexpr char kImportUsage[] =
    "Makes a checkpoint of tensors in files of other programs. A cluster, or a "
    "worker alone, goes on from it.\n"
    "\n"
    "  parasol import [PATH] --job=JOB --checkpoint_dir=DIR\n"
    "\n"
    "PATH is a file (.safetensors, .npz, .pt, .keras, .h5), the prefix or "
    "directory of a TensorFlow checkpoint, or the directory of a CSV export. "
    "Names and shapes "
    "are those of the job: \"hidden/kernel\", Keras's slots "
    "\"Adam/hidden/kernel/m\", tables \"users/ids\" and \"users/rows\". What "
    "is "
    "missing, too many or of another shape is named. Without any slots, these "
    "begin anew.\n"
    "\n"
    "  parasol import mnist.safetensors --checkpoint_dir=/ckpt/again\n"
    "  parasol import /keras/ckpt-7 --job=mnist.textproto "
    "--checkpoint_dir=/ckpt/mnist\n"
    "  worker --job=mnist.textproto --data_dir=. --checkpoint_dir=/ckpt/mnist\n"
    "\n"
    "Without a PATH the values are those that the job's warm_start names, "
    "perhaps a part of another model, or of a program with a training loop of "
    "its own, and the checkpoint is of step 0:\n"
    "\n"
    "  parasol import --job=classifier.textproto --checkpoint_dir=/ckpt/new "
    "--set='warm_start={checkpoint: \"/ckpt/program\" map {from: "
    "\"classifier/\"}}'\n"
    "\n"
    "Exit code: 0 done; 1 the files are damaged, or the disk is full; 2 the "
    "tensors are not those of the job, or bad flags; 138 try again.";

absl::StatusOr<ImportOptions> ImportOptionsFromFlags() {
  ImportOptions options;
  options.checkpoint_dir = absl::GetFlag(FLAGS_checkpoint_dir);
  options.step = absl::GetFlag(FLAGS_step);
  options.allow_surplus = absl::GetFlag(FLAGS_allow_surplus);
  if (options.checkpoint_dir.empty()) {
    return absl::InvalidArgumentError(
        "--checkpoint_dir is missing; try --help");
  }
  if (options.step.value_or(0) < 0 || options.step.value_or(0) >= kMaxSteps) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--step=", *options.step, ": must be from 0 to ", kMaxSteps - 1));
  }
  return options;
}

absl::StatusOr<LoadedJob> JobOfImport(const std::string& default_file) {
  const std::string file = absl::GetFlag(FLAGS_job);
  ASSIGN_OR_RETURN(LoadedJob job,
                   LoadJobFile(file.empty() ? default_file : file,
                               absl::GetFlag(FLAGS_set).values,
                               absl::GetFlag(FLAGS_data_dir)));
  RETURN_IF_ERROR(SetReplicas(1, job.job));
  return job;
}

absl::StatusOr<Imported> ImportFiles(std::string path) {
  ASSIGN_OR_RETURN(ImportOptions options, ImportOptionsFromFlags());
  if (IsUri(path)) {
    ASSIGN_OR_RETURN(path, ObjectCache::OfProcess().BringNamed(path));
  }
  const std::string format = absl::GetFlag(FLAGS_format);
  ASSIGN_OR_RETURN(options.format, format.empty() ? FormatOfFilesAt(path)
                                                  : ParseTensorFormat(format));
  ASSIGN_OR_RETURN(const LoadedJob job,
                   JobOfImport(absl::StrCat(path, ".job.textproto")));
  return Import(path, job, options, Clock::Real());
}

absl::StatusOr<Imported> ImportOfJob() {
  ASSIGN_OR_RETURN(const ImportOptions options, ImportOptionsFromFlags());
  if (absl::GetFlag(FLAGS_job).empty()) {
    return absl::InvalidArgumentError("PATH and --job are missing; try --help");
  }
  if (!absl::GetFlag(FLAGS_format).empty() || options.step ||
      options.allow_surplus) {
    return absl::InvalidArgumentError(
        "--format, --step and --allow_surplus are of a PATH: a warm_start "
        "makes the checkpoint of step 0");
  }
  ASSIGN_OR_RETURN(const LoadedJob job, JobOfImport(""));
  return ImportWarmStart(job, options, Clock::Real());
}

absl::Status RunImport(const std::vector<std::string>& arguments) {
  if (arguments.size() > 1) {
    RETURN_IF_ERROR(RequireArguments(arguments, 1, "PATH"));
  }
  ASSIGN_OR_RETURN(const Imported imported, arguments.empty()
                                                ? ImportOfJob()
                                                : ImportFiles(arguments[0]));
  printf("%s: step %lld%s\n", imported.checkpoint.c_str(),
         static_cast<long long>(imported.step),
         imported.fresh_slots
             ? ", without optimizer slots: these have their initial values"
             : "");
  return absl::OkStatus();
}

}  // namespace

Command ImportCommand() {
  return {.name = "import",
          .summary = "makes a checkpoint of tensors of other programs",
          .usage = kImportUsage,
          .flags = {"format", "job", "set", "data_dir", "data_cache_dir",
                    "checkpoint_dir", "step", "allow_surplus"},
          .run = [](const std::vector<std::string>& arguments) {
            return ExitWith(RunImport(arguments));
          }};
}

}  // namespace parasol
