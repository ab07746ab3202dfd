#include "ml/model/staged_inputs.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ml/loss/loss_kinds.h"
#include "ml/model/memory/arena.h"
#include "ml/model/memory/grow.h"

namespace parasol {
namespace {

// Fewest places of a batch that are worth waking threads for.
constexpr size_t kPlacesForHelpers = 4096;

constexpr int64_t kMaxStagedElements = std::numeric_limits<int32_t>::max();

size_t CountInputs(const Graph& graph, LayerInput::Kind kind) {
  return std::count_if(
      graph.inputs.begin(), graph.inputs.end(),
      [kind](const GraphInput& input) { return input.what.kind == kind; });
}

}  // namespace

StagedInputs::StagedInputs(const Graph& graph, Device& device)
    : graph_(graph),
      device_(device),
      pack_(device),
      dense_(CountInputs(graph, LayerInput::Kind::kDense)),
      ids_(CountInputs(graph, LayerInput::Kind::kIds)),
      tables_(graph.tables.size()) {
  for (size_t& dense : dense_) dense = pack_.Add();
  AddComparisons();
  for (Ids& ids : ids_) ids.offsets = pack_.Add();
  for (Ids& ids : ids_) ids.weights = pack_.Add();
  for (size_t i = 0; i < graph.tables.size(); ++i) {
    const std::vector<size_t>& id_inputs = graph.tables[i].id_inputs;
    const auto same = std::find_if(
        lookups_.begin(), lookups_.end(),
        [&](const Lookup& lookup) { return lookup.id_inputs == id_inputs; });
    tables_[i].lookup = same - lookups_.begin();
    tables_[i].width = graph.tables[i].width;
    if (same == lookups_.end()) AddLookup(id_inputs);
  }
  for (Table& table : tables_) table.packed_numbers = pack_.Add();
}

void StagedInputs::AddComparisons() {
  const std::vector<ExampleColumn> all = LossColumns(graph_.outputs);
  for (const OutputSpec& output : graph_.outputs) {
    Compared& compared = compared_.emplace_back(output.loss);
    for (const ExampleColumn& column : ColumnsOf(output.loss.loss)) {
      compared.columns.push_back(std::find(all.begin(), all.end(), column) -
                                 all.begin());
    }
    compared.labels = pack_.Add();
    compared.weights = pack_.Add();
    compared.integers = pack_.Add();
    compared.numbers = pack_.Add();
  }
}

void StagedInputs::AddLookup(const std::vector<size_t>& id_inputs) {
  Lookup& lookup = lookups_.emplace_back();
  lookup.id_inputs = id_inputs;
  for (const size_t id_input : id_inputs) {
    const auto input =
        std::find_if(graph_.inputs.begin(), graph_.inputs.end(),
                     [id_input](const GraphInput& one) {
                       return one.what.kind == LayerInput::Kind::kIds &&
                              one.index == id_input;
                     });
    lookup.inputs.push_back({.id_input = id_input,
                             .has_one_each = input->needs_each_column &&
                                             input->what.ids_per_example == 1,
                             .packed = pack_.Add(),
                             .packed_rows = pack_.Add(),
                             .packed_starts = pack_.Add(),
                             .packed_places = pack_.Add(),
                             .packed_examples = pack_.Add()});
  }
}

absl::Status StagedInputs::Load(const Batch& batch, DeviceRows* tables) {
  const InputViews inputs = ViewsOf(batch);
  examples_ = batch.size;
  LookUp(inputs, tables);
  RETURN_IF_ERROR(FindRows(tables));
  PackInputs(inputs);
  PackLabels(batch);
  return Send();
}

absl::Status StagedInputs::Load(const InputViews& inputs) {
  examples_ = inputs.size;
  LookUp(inputs, /*tables=*/nullptr);
  RETURN_IF_ERROR(FindRows(/*tables=*/nullptr));
  PackInputs(inputs);
  return Send();
}

InputViews StagedInputs::ViewsOf(const Batch& batch) {
  dense_views_.clear();
  id_views_.clear();
  for (const DenseFeature& dense : batch.dense) {
    dense_views_.push_back(dense.values);
  }
  for (const IdFeature& ids : batch.ids) {
    id_views_.push_back(
        {.offsets = ids.offsets, .ids = ids.ids, .weights = ids.weights});
  }
  return {.size = batch.size, .dense = dense_views_, .ids = id_views_};
}

absl::Status StagedInputs::Send() {
  RETURN_IF_ERROR(pack_.Send());
  return ReserveRows();
}

// To compare ids takes a fraction of the time of looking them up.
size_t StagedInputs::FindSource(const InputViews& inputs, size_t index) const {
  const std::vector<size_t>& own = lookups_[index].id_inputs;
  for (size_t i = 0; i < index; ++i) {
    const std::vector<size_t>& others = lookups_[i].id_inputs;
    if (lookups_[i].source == i &&
        std::equal(own.begin(), own.end(), others.begin(), others.end(),
                   [&inputs](size_t a, size_t b) {
                     return inputs.ids[a].offsets == inputs.ids[b].offsets &&
                            inputs.ids[a].ids == inputs.ids[b].ids;
                   })) {
      return i;
    }
  }
  return index;
}

// A group waits for those before it, which come first.
void StagedInputs::LookUp(const InputViews& inputs, DeviceRows* tables) {
  parts_.clear();
  size_t places = 0;
  for (size_t i = 0; i < lookups_.size(); ++i) {
    lookups_[i].source = FindSource(inputs, i);
    if (lookups_[i].source != i) continue;
    Begin(inputs, lookups_[i]);
    places += lookups_[i].distinct.num_places();
    parts_.push_back({.lookup = &lookups_[i], .group = Part::kDivision});
  }
  for (size_t i = 0; i < tables_.size() && tables != nullptr; ++i) {
    Lookup& lookup = SourceOf(lookups_[tables_[i].lookup]);
    GrowTo(tables_[i].probed, lookup.distinct.num_places());
    lookup.probes.push_back({.table = i, .probed = tables_[i].probed.data()});
  }
  const size_t divisions = parts_.size();
  for (size_t i = 0; i < divisions; ++i) {
    Lookup& lookup = *parts_[i].lookup;
    for (size_t group = 0; group < lookup.distinct.num_groups(); ++group) {
      parts_.push_back({.lookup = &lookup, .group = group});
    }
  }
  const auto part = [&](size_t i) { DoPart(inputs, tables, parts_[i]); };
  if (tables != nullptr && places >= kPlacesForHelpers) {
    tables->helpers().ForEach(parts_.size(), part);
  } else {
    for (size_t i = 0; i < parts_.size(); ++i) part(i);
  }
}

void StagedInputs::Begin(const InputViews& inputs, Lookup& lookup) {
  looked_up_.clear();
  for (const size_t id_input : lookup.id_inputs) {
    looked_up_.push_back(inputs.ids[id_input].ids);
  }
  lookup.distinct.Begin(looked_up_);
  lookup.probes.clear();
}

// A CPU adds gradients up place by place and has no use for places by row.
void StagedInputs::DoPart(const InputViews& inputs, const DeviceRows* tables,
                          const Part& part) {
  Lookup& lookup = *part.lookup;
  Positions* const input =
      lookup.inputs.size() == 1 && !device_.shares_host_memory()
          ? &lookup.inputs.front()
          : nullptr;
  if (part.group == Part::kDivision) {
    if (input != nullptr) {
      input->by_row.Begin(inputs.ids[input->id_input].offsets);
    }
    lookup.distinct.Divide();
    return;
  }
  const DistinctIds::Range range = lookup.distinct.Number(part.group);
  if (tables != nullptr) {
    tables->Probe(lookup.distinct.hashes(range), range.first, lookup.probes);
  }
  if (input != nullptr) {
    input->by_row.AssignGroup(range,
                              lookup.distinct.PlacesOf(part.group, range));
  }
}

absl::Status StagedInputs::FindRows(DeviceRows* tables) {
  row_lookups_.clear();
  for (size_t i = 0; i < tables_.size(); ++i) {
    Table& table = tables_[i];
    const DistinctIds& distinct = SourceOf(lookups_[table.lookup]).distinct;
    const size_t rows = distinct.size();
    if (static_cast<int64_t>(rows) * table.width > kMaxStagedElements) {
      return absl::InvalidArgumentError(absl::StrCat(
          "table ", graph_.tables[i].name, ": ", rows,
          " different ids in a batch: of width ", table.width,
          " they are more than ", kMaxStagedElements, " elements"));
    }
    RowLookup& lookup = row_lookups_.emplace_back(RowLookup{.table = i});
    if (tables == nullptr) continue;
    lookup.hashes = distinct.hashes();
    lookup.probed = absl::MakeSpan(table.probed).first(rows);
  }
  if (tables != nullptr) {
    RETURN_IF_ERROR(tables->Find(absl::MakeSpan(row_lookups_)));
  }
  PlaceRows();
  return absl::OkStatus();
}

// Lays the rows of each table on the host behind the rows of the last one.
void StagedInputs::PlaceRows() {
  row_elements_ = 0;
  rows_on_host_.clear();
  for (const RowLookup& lookup : row_lookups_) {
    Table& table = tables_[lookup.table];
    DistinctIds& distinct = SourceOf(lookups_[table.lookup]).distinct;
    table.num_rows = distinct.size();
    table.is_on_device = lookup.is_on_device;
    table.blocks = lookup.blocks;
    table.numbers = lookup.numbers;
    table.ids = {};
    if (table.is_on_device) continue;
    table.ids = distinct.ids();
    table.offset = row_elements_;
    row_elements_ += AlignedElements(table.num_rows * table.width);
    rows_on_host_.push_back(
        {.table = lookup.table, .ids = table.ids, .values = {}});
    if (graph_.tables[lookup.table].counts) {
      rows_on_host_.back().counts = distinct.counts();
    }
  }
}

void StagedInputs::PackInputs(const InputViews& inputs) {
  for (size_t i = 0; i < dense_.size(); ++i) {
    pack_.Set(dense_[i], inputs.dense[i]);
  }
  for (size_t i = 0; i < ids_.size(); ++i) {
    pack_.Set(ids_[i].offsets, inputs.ids[i].offsets);
    pack_.Set(ids_[i].weights, inputs.ids[i].weights);
  }
  for (size_t i = 0; i < lookups_.size(); ++i) {
    if (lookups_[i].source == i) {
      PackPlaces(inputs, lookups_[i]);
    } else {
      PackNothing(lookups_[i]);
    }
  }
  for (const Table& table : tables_) {
    pack_.Set(table.packed_numbers, table.numbers);
  }
}

// The comparison stays until the next batch, for a device that reads it in
// place.
void StagedInputs::PackComparison(const Batch& batch, size_t output) {
  Compared& compared = compared_[output];
  ComparedExamples examples = {.size = batch.size, .labels = batch.labels};
  if (graph_.has_named_outputs()) {
    examples.labels = batch.targets[output].labels;
    examples.counts = batch.targets[output].weights;
  }
  compared.values.clear();
  for (const size_t column : compared.columns) {
    compared.values.push_back(&batch.columns[column]);
  }
  examples.columns = compared.values;
  compared.loss.Compare(examples, compared.comparison);
  pack_.Set(compared.integers,
            absl::MakeConstSpan(compared.comparison.integers));
  pack_.Set(compared.numbers, absl::MakeConstSpan(compared.comparison.numbers));
}

void StagedInputs::PackLabels(const Batch& batch) {
  for (size_t i = 0; i < compared_.size(); ++i) PackComparison(batch, i);
  if (!graph_.has_named_outputs()) {
    pack_.Set(compared_[0].labels, absl::MakeConstSpan(batch.labels));
    pack_.Set(compared_[0].weights, absl::MakeConstSpan(batch.weights));
    return;
  }
  for (size_t i = 0; i < compared_.size(); ++i) {
    const Target& target = batch.targets[i];
    const double of_output = graph_.outputs[i].weight;
    // One that training does not go by has a loss all the same.
    const auto factor = static_cast<float>((of_output > 0 ? of_output : 1) *
                                           double{target.scale});
    std::vector<float>& products = compared_[i].products;
    products.resize(target.weights.size());
    for (size_t j = 0; j < products.size(); ++j) {
      products[j] = factor * target.weights[j];
      if (!batch.weights.empty()) products[j] *= batch.weights[j];
    }
    pack_.Set(compared_[i].labels, absl::MakeConstSpan(target.labels));
    pack_.Set(compared_[i].weights, absl::MakeConstSpan(products));
  }
}

// Places by row of several inputs are listed here.
void StagedInputs::PackPlaces(const InputViews& inputs, Lookup& lookup) {
  for (size_t i = 0; i < lookup.inputs.size(); ++i) {
    Positions& input = lookup.inputs[i];
    pack_.Set(input.packed, lookup.distinct.positions(i));
    if (device_.shares_host_memory()) continue;
    PlacesByRow& by_row = input.by_row;
    if (lookup.inputs.size() == 1) {
      by_row.End(lookup.distinct.size());
    } else {
      by_row.Assign(inputs.ids[input.id_input].offsets,
                    lookup.distinct.positions(i), lookup.distinct.size());
    }
    pack_.Set(input.packed_rows, by_row.counted_rows());
    pack_.Set(input.packed_starts, by_row.starts());
    pack_.Set(input.packed_places, by_row.places());
    // Another lookup may share it, whose input is not known to have one each.
    pack_.Set(input.packed_examples, by_row.examples());
  }
}

void StagedInputs::PackNothing(const Lookup& lookup) {
  for (const Positions& input : lookup.inputs) {
    for (const size_t array :
         {input.packed, input.packed_rows, input.packed_starts,
          input.packed_places, input.packed_examples}) {
      pack_.Set(array, absl::Span<const int32_t>());
    }
  }
}

absl::Status StagedInputs::ReserveRows() {
  if (rows_on_host_.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(GrowOnHost(device_, row_elements_, host_rows_));
  if (!device_.shares_host_memory()) {
    RETURN_IF_ERROR(Grow(device_, row_elements_, device_rows_));
  }
  for (Rows& rows : rows_on_host_) {
    const Table& table = tables_[rows.table];
    rows.values =
        host_rows_.span().subspan(table.offset, table.num_rows * table.width);
  }
  return absl::OkStatus();
}

absl::Status StagedInputs::LoadRows() {
  if (device_.shares_host_memory() || row_elements_ == 0) {
    return absl::OkStatus();
  }
  return device_.Copy(Device::Stream::kCopyIn,
                      absl::MakeConstSpan(host_rows_.data(), row_elements_),
                      device_rows_.data());
}

void StagedInputs::ListArrays(std::vector<const void*>& arrays) const {
  const auto list = [&](size_t array) {
    arrays.push_back(pack_.data<void>(array));
  };
  for (const size_t dense : dense_) list(dense);
  for (const Compared& compared : compared_) {
    list(compared.labels);
    list(compared.weights);
    list(compared.integers);
    list(compared.numbers);
  }
  for (const Ids& ids : ids_) {
    list(ids.offsets);
    list(ids.weights);
  }
  for (const Lookup& lookup : lookups_) {
    for (const Positions& input : SourceOf(lookup).inputs) {
      list(input.packed);
      if (device_.shares_host_memory()) continue;
      for (const size_t array : {input.packed_rows, input.packed_starts,
                                 input.packed_places, input.packed_examples}) {
        arrays.push_back(pack_.room<void>(array));
      }
    }
  }
}

TableRows StagedInputs::RowsOf(size_t index) const {
  const Table& table = tables_[index];
  TableRows rows = {};
  rows.elements = static_cast<int64_t>(table.num_rows) * table.width;
  rows.width = static_cast<int32_t>(table.width);
  if (table.is_on_device) {
    rows.numbers = pack_.data<int32_t>(table.packed_numbers);
    rows.blocks = table.blocks;
  } else {
    rows.values =
        (device_.shares_host_memory() ? host_rows_ : device_rows_).data() +
        table.offset;
  }
  return rows;
}

RowsView StagedInputs::View(size_t table, size_t id_input) const {
  const Lookup& own = lookups_[tables_[table].lookup];
  const size_t i =
      std::find(own.id_inputs.begin(), own.id_inputs.end(), id_input) -
      own.id_inputs.begin();
  const bool has_one_each = own.inputs[i].has_one_each;
  const Positions& input = SourceOf(own).inputs[i];
  RowsView view = {.offsets = offsets(id_input),
                   .positions = pack_.data<int32_t>(input.packed),
                   .weights = pack_.data<float>(ids_[id_input].weights)};
  if (device_.shares_host_memory()) return view;
  const int32_t* const rows = pack_.room<int32_t>(input.packed_rows);
  view.by_row = {
      .num_rows = rows,
      .rows = rows + 1,
      .starts = pack_.room<int32_t>(input.packed_starts),
      .places = pack_.room<int32_t>(input.packed_places),
      .examples =
          has_one_each ? nullptr : pack_.room<int32_t>(input.packed_examples),
      .capacity =
          static_cast<int64_t>(pack_.capacity<int32_t>(input.packed_places))};
  return view;
}

}  // namespace parasol
