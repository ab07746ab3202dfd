#include "tool/checkpoint/inspection.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/status_macros.h"
#include "cluster/checkpoint/checkpoint_argument.h"
#include "storage/checked_file.h"
#include "storage/checkpoint_manifest.h"
#include "storage/checkpoint_name.h"
#include "storage/checkpoint_reader.h"
#include "tool/checkpoint/checkpoint_values.h"

namespace parasol {
namespace {

constexpr char kValueName[] = "value";

template <typename VariableOrTable>
std::vector<Inspection::Array> ArraysOf(const VariableOrTable& entry) {
  std::vector<Inspection::Array> arrays = {{.name = kValueName}};
  for (const std::string& slot : entry.slot()) arrays.push_back({.name = slot});
  return arrays;
}

absl::StatusOr<Inspection::Contents> InspectVariable(
    const CheckpointReader& checkpoint,
    const durable::CheckpointVariable& variable) {
  Inspection::Contents contents;
  contents.arrays = ArraysOf(variable);
  for (size_t array = 0; array < contents.arrays.size(); ++array) {
    ArrayStatistics& statistics = contents.arrays[array].statistics;
    ASSIGN_OR_RETURN(
        const int64_t updates,
        VisitElements(checkpoint, variable, static_cast<int>(array),
                      [&](int64_t, absl::Span<const float> values) {
                        statistics.Add(values);
                        return absl::OkStatus();
                      }));
    contents.updates = std::max(contents.updates, updates);
  }
  return contents;
}

absl::StatusOr<Inspection::Contents> InspectTable(
    const CheckpointReader& checkpoint, const durable::CheckpointTable& table) {
  Inspection::Contents contents;
  contents.arrays = ArraysOf(table);
  std::vector<size_t> widths = {table.width()};
  for (int slot = 0; slot < table.slot_size(); ++slot) {
    widths.push_back(SlotWidthOf(table, slot));
  }
  // The reader has compared the rows' elements with the manifest's.
  RETURN_IF_ERROR(checkpoint.ReadRows(table.name(), [&](const RowBatch& batch) {
    contents.updates = std::max(contents.updates, batch.updates);
    contents.rows += static_cast<int64_t>(batch.ids.size());
    absl::Span<const float> left = batch.rows;
    for (size_t row = 0; row < batch.ids.size(); ++row) {
      for (size_t array = 0; array < widths.size(); ++array) {
        contents.arrays[array].statistics.Add(left.subspan(0, widths[array]));
        left.remove_prefix(widths[array]);
      }
    }
    return absl::OkStatus();
  }));
  return contents;
}

// Verifies the checkpoint's files. What increments have replaced was not read.
absl::Status VerifyAll(const CheckpointReader& checkpoint,
                       const Inspection& inspection) {
  RETURN_IF_ERROR(checkpoint.Verify());
  const auto& files = inspection.manifest.file();
  if (std::none_of(files.begin(), files.end(),
                   [](const auto& file) { return file.increment() > 0; })) {
    return absl::OkStatus();
  }
  for (const durable::CheckpointFile& file : files) {
    ASSIGN_OR_RETURN(
        const auto checked,
        CheckedFile::Open(ListedPath(inspection.path, file.name()), file));
    RETURN_IF_ERROR(checked->Verify());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Inspection> Inspect(const std::string& path) {
  Inspection inspection;
  ASSIGN_OR_RETURN(inspection.path, CheckpointAt(path));
  ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> checkpoint,
                   CheckpointReader::Open(inspection.path));
  inspection.manifest = checkpoint->manifest();
  for (const auto& variable : inspection.manifest.variable()) {
    ASSIGN_OR_RETURN(Inspection::Contents contents,
                     InspectVariable(*checkpoint, variable),
                     _ << inspection.path);
    inspection.variables.push_back(std::move(contents));
  }
  for (const auto& table : inspection.manifest.table()) {
    ASSIGN_OR_RETURN(Inspection::Contents contents,
                     InspectTable(*checkpoint, table), _ << inspection.path);
    inspection.tables.push_back(std::move(contents));
  }
  ASSIGN_OR_RETURN(inspection.journals, checkpoint->Journals());
  RETURN_IF_ERROR(VerifyAll(*checkpoint, inspection));
  return inspection;
}

}  // namespace parasol
