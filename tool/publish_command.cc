#include "tool/publish_command.h"

#include <cstdio>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/process.h"
#include "base/status_macros.h"
#include "cluster/checkpoint/checkpoint_argument.h"
#include "storage/tensor_files/tensor.h"
#include "tool/checkpoint/poll_interval_flag.h"
#include "tool/exchange/layout_flag.h"
#include "tool/flag/flag_checks.h"
#include "tool/output_flag.h"
#include "tool/publish/publisher.h"
#include "tool/publish/publishing_follower.h"

ABSL_FLAG(bool, follow, false,
          "Publishes each new checkpoint of the directory, until the job's "
          "last one or SIGTERM.");
ABSL_FLAG(std::string, dtype, "float32",
          "float32, or bfloat16: values rounded to that, of which fewer change "
          "from one version to the next.");
ABSL_FLAG(int, full_every, 10,
          "Every so many versions one is whole, so that a new receiver need "
          "not read all; 1: each one is.");
ABSL_FLAG(int, max_to_keep, 0,
          "Number of versions that stay, besides those that they build on; 0: "
          "all.");

namespace parasol {
namespace {

constexpr char kPublishUsage[] =
    "Writes a checkpoint's variables and sparse tables as a version in a "
    "directory that inference engines pull: safetensors with an index, whole, "
    "or, if that is smaller, what has changed since the version before "
    "(overwrite or xor, compressed with zstd), with checksums of the new "
    "state. A version gets its name when it is whole. With --follow each new "
    "checkpoint is published once; SIGTERM ends it in good order.\n"
    "\n"
    "  parasol publish CKPT --output=DIR [--follow]\n"
    "\n"
    "CKPT is a checkpoint's directory, or one with many checkpoints, of which "
    "the newest is meant; with --follow it is one with many. DIR has the "
    "versions of one run.\n"
    "\n"
    "  parasol publish /ckpt/mnist --output=/published/mnist\n"
    "  parasol publish /ckpt/mnist --output=/published/mnist --follow "
    "--dtype=bfloat16 --layout=pytorch --max_to_keep=20\n"
    "\n"
    "Exit code: 0 done, or after SIGTERM; 1 a file is damaged, the disk is "
    "full, or DIR has a later step, or this step with other bytes; 2 bad "
    "flags, there is no checkpoint, or DIR is of another run; 138 try again.";

absl::StatusOr<Publisher::Options> OptionsFromFlags() {
  Publisher::Options options;
  options.directory = absl::GetFlag(FLAGS_output);
  if (options.directory.empty()) {
    return absl::InvalidArgumentError("--output is missing; try --help");
  }
  const std::string type = absl::GetFlag(FLAGS_dtype);
  options.type = ElementTypeOf(type);
  if (options.type != ElementType::kFloat32 &&
      options.type != ElementType::kBfloat16) {
    return absl::InvalidArgumentError(
        absl::StrCat("--dtype=", type, ": must be float32 or bfloat16"));
  }
  ASSIGN_OR_RETURN(options.pytorch_layout, HasPyTorchLayout());
  options.full_every = absl::GetFlag(FLAGS_full_every);
  RETURN_IF_ERROR(CheckAtLeast("full_every", options.full_every, 1));
  options.max_to_keep = absl::GetFlag(FLAGS_max_to_keep);
  RETURN_IF_ERROR(CheckAtLeast("max_to_keep", options.max_to_keep, 0));
  RETURN_IF_ERROR(
      CheckDuration("poll_interval", absl::GetFlag(FLAGS_poll_interval)));
  return options;
}

void Print(const Publication& publication, const std::string& directory) {
  std::printf("%s\n", Describe(publication, directory).c_str());
  std::fflush(stdout);
}

absl::Status Follow(const std::string& checkpoints,
                    const Publisher::Options& options) {
  // No output for what can't be followed.
  RETURN_IF_ERROR(CheckCanBeFollowed(checkpoints));
  // Before any thread starts.
  TerminationSignal signal;
  ASSIGN_OR_RETURN(Publisher publisher, Publisher::Open(options));
  PublishingFollower follower(
      {.checkpoints = checkpoints,
       .poll_interval = absl::GetFlag(FLAGS_poll_interval)},
      publisher,
      [&options](const Publication& publication) {
        Print(publication, options.directory);
      },
      Clock::Real());
  signal.OnSignal([&follower] { follower.Stop(); });
  const absl::Status status = follower.Run();
  signal.Disarm();
  return status;
}

absl::Status RunPublish(const std::vector<std::string>& arguments) {
  RETURN_IF_ERROR(RequireArguments(arguments, 1, "CKPT"));
  ASSIGN_OR_RETURN(const Publisher::Options options, OptionsFromFlags());
  if (absl::GetFlag(FLAGS_follow)) return Follow(arguments[0], options);
  ASSIGN_OR_RETURN(const std::string checkpoint, CheckpointAt(arguments[0]));
  ASSIGN_OR_RETURN(Publisher publisher, Publisher::Open(options));
  ASSIGN_OR_RETURN(const Publication publication,
                   publisher.Publish(checkpoint));
  Print(publication, options.directory);
  return absl::OkStatus();
}

}  // namespace

Command PublishCommand() {
  return {.name = "publish",
          .summary = "writes versions of a model for inference engines",
          .usage = kPublishUsage,
          .flags = {"data_cache_dir", "output", "follow", "dtype", "layout",
                    "full_every", "max_to_keep", "poll_interval", "log_format"},
          .run = [](const std::vector<std::string>& arguments) {
            return ExitWith(RunPublish(arguments));
          }};
}

}  // namespace parasol
