#include "cluster/rows/row_form.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "storage/checkpoint_manifest.h"

namespace parasol {
namespace {

std::vector<uint32_t> SlotWidths(const durable::CheckpointTable& table) {
  std::vector<uint32_t> widths;
  for (int slot = 0; slot < table.slot_size(); ++slot) {
    widths.push_back(SlotWidthOf(table, slot));
  }
  return widths;
}

}  // namespace

durable::CheckpointTable RowForm(const std::string& name, size_t width,
                                 const Optimizer& optimizer) {
  durable::CheckpointTable form;
  form.set_name(name);
  form.set_width(static_cast<uint32_t>(width));
  const std::vector<std::string>& slots = optimizer.slot_names();
  form.mutable_slot()->Assign(slots.begin(), slots.end());
  if (optimizer.FloatsOfRow(width) == width * (1 + slots.size())) return form;
  for (size_t slot = 0; slot < slots.size(); ++slot) {
    form.add_slot_width(
        static_cast<uint32_t>(optimizer.SlotWidth(slot, width)));
  }
  return form;
}

std::string SlotsText(const durable::CheckpointTable& table) {
  std::string text = absl::StrCat("[", absl::StrJoin(table.slot(), ", "), "]");
  if (table.slot_width_size() == 0) return text;
  return absl::StrCat(text, " of widths [",
                      absl::StrJoin(table.slot_width(), ", "), "]");
}

bool HasSameRows(const durable::CheckpointTable& a,
                 const durable::CheckpointTable& b) {
  return a.width() == b.width() &&
         std::equal(a.slot().begin(), a.slot().end(), b.slot().begin(),
                    b.slot().end()) &&
         SlotWidths(a) == SlotWidths(b);
}

}  // namespace parasol
