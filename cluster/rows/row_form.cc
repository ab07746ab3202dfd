#include "cluster/rows/row_form.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "storage/checkpoint_manifest.h"

namespace parasol {

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

bool HasSameRows(const durable::CheckpointTable& a,
                 const durable::CheckpointTable& b) {
  return a.width() == b.width() &&
         std::equal(a.slot().begin(), a.slot().end(), b.slot().begin(),
                    b.slot().end()) &&
         FloatsOfRow(a) == FloatsOfRow(b);
}

}  // namespace parasol
