#include "ml/model/staged_inputs.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ml/model/arena.h"

namespace parasol {
namespace {

constexpr int64_t kMaxElements = std::numeric_limits<int32_t>::max();

size_t CountInputs(const Graph& graph, LayerInput::Kind kind) {
  return std::count_if(
      graph.inputs.begin(), graph.inputs.end(),
      [kind](const GraphInput& input) { return input.what.kind == kind; });
}

}  // namespace

StagedInputs::StagedInputs(const Graph& graph, Device& device)
    : graph_(graph),
      device_(device),
      dense_(CountInputs(graph, LayerInput::Kind::kDense)),
      ids_(CountInputs(graph, LayerInput::Kind::kIds)),
      tables_(graph.tables.size()),
      rows_(graph.tables.size()) {
  for (size_t i = 0; i < graph.tables.size(); ++i) {
    const std::vector<size_t>& id_inputs = graph.tables[i].id_inputs;
    const auto same = std::find_if(
        lookups_.begin(), lookups_.end(),
        [&](const Lookup& lookup) { return lookup.id_inputs == id_inputs; });
    tables_[i].lookup = same - lookups_.begin();
    tables_[i].width = graph.tables[i].width;
    rows_[i].table = i;
    if (same != lookups_.end()) continue;
    Lookup& lookup = lookups_.emplace_back();
    lookup.id_inputs = id_inputs;
    lookup.positions.resize(id_inputs.size());
    lookup.staged_positions.resize(id_inputs.size());
  }
}

absl::Status StagedInputs::Load(const Batch& batch) {
  examples_ = batch.size;
  for (size_t i = 0; i < dense_.size(); ++i) {
    RETURN_IF_ERROR(dense_[i].Load(device_, batch.dense[i].values));
  }
  RETURN_IF_ERROR(labels_.Load(device_, batch.labels));
  RETURN_IF_ERROR(weights_.Load(device_, batch.weights));
  for (size_t i = 0; i < ids_.size(); ++i) {
    RETURN_IF_ERROR(LoadIds(batch.ids[i], ids_[i]));
  }
  for (Lookup& lookup : lookups_) RETURN_IF_ERROR(LookUp(batch, lookup));
  row_elements_ = 0;
  for (size_t i = 0; i < tables_.size(); ++i) {
    RETURN_IF_ERROR(PlaceRows(i)) << "table " << graph_.tables[i].name;
  }
  return ReserveRows();
}

absl::Status StagedInputs::LoadIds(const IdFeature& feature, Ids& ids) {
  RETURN_IF_ERROR(ids.offsets.Load(device_, feature.offsets));
  return ids.weights.Load(device_, feature.weights);
}

absl::Status StagedInputs::LookUp(const Batch& batch, Lookup& lookup) {
  lookup.distinct.Clear();
  for (size_t i = 0; i < lookup.id_inputs.size(); ++i) {
    const std::vector<uint64_t>& ids = batch.ids[lookup.id_inputs[i]].ids;
    std::vector<int32_t>& positions = lookup.positions[i];
    // A smaller batch keeps the memory.
    positions.resize(ids.size());
    lookup.distinct.Add(ids, positions.data());
  }
  lookup.distinct.SortByStripe(absl::MakeSpan(lookup.positions));
  for (size_t i = 0; i < lookup.id_inputs.size(); ++i) {
    RETURN_IF_ERROR(
        lookup.staged_positions[i].Load(device_, lookup.positions[i]));
  }
  return absl::OkStatus();
}

// Behind those of the tables before it.
absl::Status StagedInputs::PlaceRows(size_t index) {
  Table& table = tables_[index];
  const absl::Span<const uint64_t> ids = lookups_[table.lookup].distinct.ids();
  const int64_t elements = ids.size() * table.width;
  if (elements > kMaxElements) {
    return absl::InvalidArgumentError(absl::StrCat(
        ids.size(), " different ids in a batch: of width ", table.width,
        " they are more than ", kMaxElements, " elements"));
  }
  table.offset = row_elements_;
  row_elements_ += AlignedElements(elements);
  rows_[index].ids = ids;
  return absl::OkStatus();
}

absl::Status StagedInputs::ReserveRows() {
  if (tables_.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(GrowOnHost(device_, row_elements_, host_rows_));
  if (!device_.shares_host_memory()) {
    RETURN_IF_ERROR(Grow(device_, row_elements_, device_rows_));
  }
  for (size_t i = 0; i < tables_.size(); ++i) {
    rows_[i].values = host_rows_.span().subspan(
        tables_[i].offset, rows_[i].ids.size() * tables_[i].width);
  }
  return absl::OkStatus();
}

absl::Status StagedInputs::LoadRows() {
  if (device_.shares_host_memory() || tables_.empty()) return absl::OkStatus();
  return device_.Copy(Device::Stream::kCopyIn,
                      absl::MakeConstSpan(host_rows_.data(), row_elements_),
                      device_rows_.data());
}

void StagedInputs::ListArrays(std::vector<const void*>& arrays) const {
  for (const InputArray<float>& dense : dense_) arrays.push_back(dense.data());
  arrays.push_back(labels_.data());
  arrays.push_back(weights_.data());
  for (const Ids& ids : ids_) {
    arrays.push_back(ids.offsets.data());
    arrays.push_back(ids.weights.data());
  }
  for (const Lookup& lookup : lookups_) {
    for (const InputArray<int32_t>& positions : lookup.staged_positions) {
      arrays.push_back(positions.data());
    }
  }
}

absl::Span<const float> StagedInputs::RowsOf(size_t table) const {
  const Array<float>& array =
      device_.shares_host_memory() ? host_rows_ : device_rows_;
  return array.span().subspan(tables_[table].offset,
                              rows_[table].values.size());
}

RowsView StagedInputs::View(size_t table, size_t id_input) const {
  const Table& rows = tables_[table];
  const Lookup& lookup = lookups_[rows.lookup];
  const size_t i =
      std::find(lookup.id_inputs.begin(), lookup.id_inputs.end(), id_input) -
      lookup.id_inputs.begin();
  const Ids& ids = ids_[id_input];
  return {.offsets = ids.offsets.data(),
          .positions = lookup.staged_positions[i].data(),
          .weights = ids.weights.data()};
}

}  // namespace parasol
