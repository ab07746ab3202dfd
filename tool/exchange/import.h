#ifndef PARASOL_TOOL_EXCHANGE_IMPORT_H_
#define PARASOL_TOOL_EXCHANGE_IMPORT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "cluster/job/job_file.h"
#include "storage/tensor_files/tensor_format.h"

namespace parasol {

struct ImportOptions {
  TensorFormat format = TensorFormat::kSafetensors;
  // Directory of checkpoints, which has none yet.
  std::string checkpoint_dir = {};
  // Number of steps that the model has been trained for; nullopt: what the
  // files say, or 0. Updates, too, if the files don't say how many there were.
  std::optional<int64_t> step = {};
  bool allow_surplus = false;
};

struct Imported {
  std::string checkpoint = {};  // path
  int64_t step = 0;
  // True if the files had no slots: they have their initial values.
  bool fresh_slots = false;
};

// Makes a checkpoint of the tensors at `path`, perhaps PyTorch's
// (TranslatePyTorch()), with which `job` goes on: a new run, whose variables
// have all had as many updates as the files say, or none if their slots begin
// anew. The memory that this needs does not grow with the model, but for
// PyTorch's: one of its tensors with other axes is held twice.
//   InvalidArgument  the tensors don't fit the job (MatchTensors()), or don't
//                    say how many updates their slots have had; or the job is
//                    synchronous and steps are not updates; or the directory
//                    has checkpoints, or an owner that lives.
//   any other        as for reading the files and storing checkpoints.
absl::StatusOr<Imported> Import(const std::string& path, const LoadedJob& job,
                                const ImportOptions& options, Clock& clock);

// Makes the checkpoint of step 0 with which a new run of `job` begins warm: of
// the values that its warm_start says (WriteWarmStart()). Takes of the options
// the directory alone.
//   InvalidArgument  the job has no warm_start, or what it names can't be
//                    opened or lacks something; or as for Import().
absl::StatusOr<Imported> ImportWarmStart(const LoadedJob& job,
                                         const ImportOptions& options,
                                         Clock& clock);

}  // namespace parasol

#endif  // PARASOL_TOOL_EXCHANGE_IMPORT_H_
