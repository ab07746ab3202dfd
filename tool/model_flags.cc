#include "tool/model_flags.h"

#include <cstdlib>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "cluster/checkpoint/model/row_file.h"
#include "cluster/cluster_spec/compute_flags.h"
#include "tool/flag/flag_checks.h"

ABSL_FLAG(std::string, device, "auto",
          "Where to compute: auto (a CUDA device if there is one), cpu, "
          "cuda:N.");
ABSL_FLAG(int, threads, 1, "Number of CPU threads that compute.");
ABSL_FLAG(
    std::optional<int64_t>, table_memory, std::nullopt,
    "Bytes of memory for the rows of all sparse tables of a checkpoint. A "
    "table that does not fit is kept in a file on disk. Default: all "
    "tables are in memory.");
ABSL_FLAG(std::string, table_dir, "",
          "Directory on disk for the files of --table_memory. Default: TMPDIR, "
          "or /tmp.");

namespace parasol {
namespace {

// Says which tables are kept in files, and where.
absl::Status SetTableOptions(CheckpointModel::Options& options) {
  const std::optional<int64_t> memory = absl::GetFlag(FLAGS_table_memory);
  options.table_dir = absl::GetFlag(FLAGS_table_dir);
  if (!memory.has_value()) {
    if (options.table_dir.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("--table_dir=", options.table_dir,
                     " is for tables beyond --table_memory; set that too"));
  }
  RETURN_IF_ERROR(CheckAtLeast("table_memory", *memory, 0));
  options.table_memory = *memory;
  absl::string_view where = "--table_dir";
  if (options.table_dir.empty()) {
    where = "TMPDIR";
    const char* const variable = std::getenv("TMPDIR");
    options.table_dir = variable == nullptr ? "" : variable;
    if (options.table_dir.empty()) options.table_dir = "/tmp";
  }
  const absl::Status usable =
      RowFileWriter::Create(options.table_dir, /*width=*/1).status();
  if (usable.ok()) return usable;
  return absl::InvalidArgumentError(
      absl::StrCat(where, "=", options.table_dir, ": ", usable.message(),
                   "; name another with --table_dir"));
}

}  // namespace

absl::StatusOr<CheckpointModel::Options> ModelOptionsFromFlags() {
  CheckpointModel::Options options = {.device = absl::GetFlag(FLAGS_device),
                                      .threads = absl::GetFlag(FLAGS_threads)};
  RETURN_IF_ERROR(CheckComputeFlags(
      {.device = options.device, .threads = options.threads}));
  RETURN_IF_ERROR(SetTableOptions(options));
  return options;
}

}  // namespace parasol
