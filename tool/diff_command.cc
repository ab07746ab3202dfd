#include "tool/diff_command.h"

#include <cstdint>
#include <cstdio>
#include <memory>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/process.h"
#include "base/status_macros.h"
#include "cluster/checkpoint/checkpoint_argument.h"
#include "tool/checkpoint/checkpoint_difference.h"
#include "tool/checkpoint/row_ids.h"
#include "tool/json_flag.h"

ABSL_FLAG(double, tolerance, 0,
          "Elements that differ by no more than this count as equal.");
ABSL_FLAG(
    std::string, row_ids, "",
    "Sparse table whose ids are compared, and nothing else: a line for "
    "each that has a row in A alone (\"- 17\") or in B alone (\"+ 17\").");

namespace parasol {
namespace {

constexpr char kDiffUsage[] =
    "Compares two checkpoints: of each variable, slot and sparse table that "
    "differs the largest difference, and the rows that differ or are only in "
    "one. Steps, runs and jobs may differ.\n"
    "\n"
    "  parasol diff A B\n"
    "\n"
    "A and B are checkpoints' directories, or directories with many "
    "checkpoints, of which the newest is meant, or DIR/BEST, the one with the "
    "best evaluation.\n"
    "\n"
    "  parasol diff /ckpt/a/ckpt-000000001200 /ckpt/b/ckpt-000000001200\n"
    "  parasol diff /ckpt/a /ckpt/a/BEST\n"
    "  parasol diff /ckpt/a /ckpt/b --tolerance=1e-5 && echo same\n"
    "  parasol diff /ckpt/ckpt-000000001200 /ckpt --row_ids=clicks\n"
    "\n"
    "Exit code: 0 same values; 1 they differ; 2 an error, as diff(1) has it.";

// As diff(1) has them.
constexpr int kSame = 0;
constexpr int kDiffer = 1;
constexpr int kTrouble = 2;

absl::StatusOr<int> DiffRowIds(const CheckpointReader& a,
                               const CheckpointReader& b,
                               const std::string& table) {
  if (absl::GetFlag(FLAGS_json) || absl::GetFlag(FLAGS_tolerance) != 0) {
    return absl::InvalidArgumentError(
        "--row_ids prints a line for each id; leave --json and --tolerance "
        "out");
  }
  int code = kSame;
  const auto print = [&code](char sign, uint64_t id) {
    code = kDiffer;
    absl::PrintF("%c %d\n", sign, id);
  };
  RETURN_IF_ERROR(CompareRowIds(
      a, b, table, [&](uint64_t id) { print('-', id); },
      [&](uint64_t id) { print('+', id); }));
  return code;
}

absl::StatusOr<int> RunDiff(const std::vector<std::string>& arguments) {
  RETURN_IF_ERROR(RequireArguments(arguments, 2, "A or B"));
  const double tolerance = absl::GetFlag(FLAGS_tolerance);
  if (!(tolerance >= 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--tolerance=", tolerance, ": must be 0 or more"));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> a,
                   OpenCheckpointAt(arguments[0]));
  ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> b,
                   OpenCheckpointAt(arguments[1]));
  const std::string table = absl::GetFlag(FLAGS_row_ids);
  if (!table.empty()) return DiffRowIds(*a, *b, table);
  ASSIGN_OR_RETURN(const CheckpointDifference difference, Compare(*a, *b));
  const std::string text = absl::GetFlag(FLAGS_json)
                               ? ToJson(difference, tolerance)
                               : ToText(difference, tolerance);
  fputs(text.c_str(), stdout);
  return difference.IsSame(tolerance) ? kSame : kDiffer;
}

int Run(const std::vector<std::string>& arguments) {
  const absl::StatusOr<int> code = RunDiff(arguments);
  if (code.ok()) return *code;
  ExitWith(code.status());
  return kTrouble;
}

}  // namespace

Command DiffCommand() {
  return {.name = "diff",
          .summary = "compares two checkpoints",
          .usage = kDiffUsage,
          .flags = {"data_cache_dir", "json", "row_ids", "tolerance"},
          .run = Run,
          .trouble = kTrouble};
}

}  // namespace parasol
