#include "ps/load_table.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "ml/initializer/initializer.h"
#include "ml/optimizer/optimizer.h"
#include "ps/dedup_window.h"
#include "ps/table_layout.h"
#include "storage/checkpoint_reader.h"
#include "storage/shard_entry.h"

namespace parasol {
namespace {

absl::StatusOr<std::unique_ptr<ParameterTable>> InitialTable(
    const wire::LoadRequest& request, TableLayout layout,
    std::unique_ptr<const Optimizer> optimizer) {
  const Optimizer& slots = *optimizer;
  return ParameterTable::Create(
      std::move(layout), std::move(optimizer), DedupWindows(),
      [&request, &slots](const wire::PartSpec& part, int array, int64_t first,
                         absl::Span<float> out) -> absl::StatusOr<int64_t> {
        if (array == kValueArray) {
          RETURN_IF_ERROR(Initialize(part.initializer(), request.seed(),
                                     part.variable(), part.variable_shape(),
                                     first, out));
        } else {
          std::fill(out.begin(), out.end(), slots.InitialSlotValue(array - 1));
        }
        return 0;
      });
}

// That the part can be restored from what the manifest calls by its name.
absl::Status CheckVariable(const durable::CheckpointVariable& saved,
                           const wire::PartSpec& part,
                           const Optimizer& optimizer) {
  if (!std::equal(saved.shape().begin(), saved.shape().end(),
                  part.variable_shape().begin(), part.variable_shape().end())) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", part.variable(), "\" has shape [",
                     absl::StrJoin(saved.shape(), ", "), "], the job has [",
                     absl::StrJoin(part.variable_shape(), ", "), "]"));
  }
  const std::vector<std::string>& slots = optimizer.slot_names();
  if (!std::equal(saved.slot().begin(), saved.slot().end(), slots.begin(),
                  slots.end())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", part.variable(), "\" has slots [",
        absl::StrJoin(saved.slot(), ", "), "], the job's optimizer has [",
        absl::StrJoin(slots, ", "), "]"));
  }
  return absl::OkStatus();
}

absl::Status CheckManifest(const durable::CheckpointManifest& manifest,
                           const wire::LoadRequest& request,
                           const Optimizer& optimizer) {
  if (manifest.run_id() != request.run_id()) {
    return absl::InvalidArgumentError(
        absl::StrCat("of run ", manifest.run_id(), ", not ", request.run_id()));
  }
  std::map<std::string, const durable::CheckpointVariable*> saved;
  for (const durable::CheckpointVariable& variable : manifest.variable()) {
    saved[variable.name()] = &variable;
  }
  for (const wire::PartSpec& part : request.part()) {
    const auto variable = saved.find(part.variable());
    if (variable == saved.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("has no variable \"", part.variable(), "\""));
    }
    RETURN_IF_ERROR(CheckVariable(*variable->second, part, optimizer));
  }
  return absl::OkStatus();
}

absl::StatusOr<DedupWindows> ReadWindows(const CheckpointReader& checkpoint,
                                         const wire::LoadRequest& request) {
  ASSIGN_OR_RETURN(const std::vector<DedupEntry> entries,
                   checkpoint.ReadDedup(request.shard(), request.num_shards()));
  DedupWindows windows;
  for (const DedupEntry& entry : entries) {
    ASSIGN_OR_RETURN(windows[entry.worker_incarnation],
                     DedupWindow::Parse(entry.window));
  }
  return windows;
}

absl::StatusOr<std::unique_ptr<ParameterTable>> RestoredTable(
    const CheckpointReader& checkpoint, const wire::LoadRequest& request,
    TableLayout layout, std::unique_ptr<const Optimizer> optimizer) {
  RETURN_IF_ERROR(CheckManifest(checkpoint.manifest(), request, *optimizer));
  ASSIGN_OR_RETURN(const DedupWindows windows,
                   ReadWindows(checkpoint, request));
  return ParameterTable::Create(
      std::move(layout), std::move(optimizer), windows,
      [&checkpoint](const wire::PartSpec& part, int array, int64_t first,
                    absl::Span<float> out) {
        return checkpoint.ReadElements(part.variable(), array, first, out);
      });
}

}  // namespace

absl::StatusOr<std::unique_ptr<ParameterTable>> LoadTable(
    const wire::LoadRequest& request, uint64_t memory_limit_bytes) {
  ASSIGN_OR_RETURN(std::unique_ptr<const Optimizer> optimizer,
                   MakeOptimizer(request.optimizer()));
  const uint64_t element_bytes =
      sizeof(float) * (1 + optimizer->slot_names().size());
  ASSIGN_OR_RETURN(
      TableLayout layout,
      TableLayout::Create(request.part(), memory_limit_bytes / element_bytes),
      _ << "memory limit of " << memory_limit_bytes << " bytes");
  if (request.checkpoint().empty()) {
    return InitialTable(request, std::move(layout), std::move(optimizer));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> checkpoint,
                   CheckpointReader::Open(request.checkpoint()));
  ASSIGN_OR_RETURN(std::unique_ptr<ParameterTable> table,
                   RestoredTable(*checkpoint, request, std::move(layout),
                                 std::move(optimizer)),
                   _ << "checkpoint " << request.checkpoint());
  return table;
}

}  // namespace parasol
