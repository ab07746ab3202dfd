#ifndef PARASOL_ML_MODEL_STAGED_INPUTS_H_
#define PARASOL_ML_MODEL_STAGED_INPUTS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ml/device/device.h"
#include "ml/input/feature/batch.h"
#include "ml/kernel/pass_argument.h"
#include "ml/layer/layer.h"
#include "ml/loss/loss.h"
#include "ml/model/device_rows.h"
#include "ml/model/distinct_ids.h"
#include "ml/model/graph.h"
#include "ml/model/input_pack.h"
#include "ml/model/input_views.h"
#include "ml/model/model.h"
#include "ml/model/places_by_row.h"

namespace parasol {

// A batch in the form that a graph's layers read: tensors and weights at
// addresses for the device, ids as positions of rows. Tables in which the same
// inputs, or inputs with the same ids, are looked up share the work. Not
// thread-safe.
class StagedInputs : public StagedBatch {
 public:
  // `graph` and `device` must outlive this object.
  StagedInputs(const Graph& graph, Device& device);

  // Looks up the ids of `batch`, and the rows that `tables` has on the device,
  // and starts to copy the batch there. The caller has checked `batch` and
  // keeps it until its pass is over. `tables`: null if none is on the device.
  //   InvalidArgument    it has too many different ids for one array.
  //   ResourceExhausted  the device is full.
  //   Unavailable        the device was lost.
  absl::Status Load(const Batch& batch, DeviceRows* tables);
  // Does so for inputs without labels, of a graph without outputs to compare,
  // whose tables are all on the host.
  absl::Status Load(const InputViews& inputs);

  absl::Span<const Rows> rows() const override { return rows_on_host_; }

  // Starts to copy the rows, which the caller has written, to the device: on
  // the copy-in stream, behind Load()'s copies.
  absl::Status LoadRows();

  int64_t examples() const { return examples_; }
  // Adds the addresses from which a pass reads all but the rows.
  void ListArrays(std::vector<const void*>& arrays) const;
  // Addresses in the device's memory. Null weights stand for 1. A named
  // output's weights have all factors of its losses in them.
  const float* dense(size_t input) const {
    return pack_.data<float>(dense_[input]);
  }
  const float* labels(size_t output) const {
    return pack_.data<float>(compared_[output].labels);
  }
  const float* weights(size_t output) const {
    return pack_.data<float>(compared_[output].weights);
  }
  // Arrays that Loss::Compare() has made of the batch for an output's loss;
  // null for an empty one.
  const int32_t* integers(size_t output) const {
    return pack_.data<int32_t>(compared_[output].integers);
  }
  const float* numbers(size_t output) const {
    return pack_.data<float>(compared_[output].numbers);
  }
  // The distinct ids of a table that is on the host, whose rows the pass reads.
  absl::Span<const uint64_t> ids(size_t table) const {
    return tables_[table].ids;
  }
  bool is_on_device(size_t table) const { return tables_[table].is_on_device; }
  // The table's rows, without gradients, as kernels read them.
  TableRows RowsOf(size_t table) const;
  // The offsets of an id input, as IdFeature has them.
  const int32_t* offsets(size_t id_input) const {
    return pack_.data<int32_t>(ids_[id_input].offsets);
  }
  // The positions of the ids of `id_input` in `table`, without the rows.
  RowsView View(size_t table, size_t id_input) const;

 private:
  // The ids of one input within a lookup, on the host and in the pack.
  struct Positions {
    size_t id_input = 0;
    // True if each example has exactly one id: its place is its number.
    bool has_one_each = false;
    size_t packed = 0;
    PlacesByRow by_row = {};
    size_t packed_rows = 0, packed_starts = 0, packed_places = 0,
           packed_examples = 0;
  };
  // The distinct ids of some id inputs.
  struct Lookup {
    // Index of the lookup whose results this one has, too: its own, or an
    // earlier one's whose inputs have equal ids in this batch.
    size_t source = 0;
    std::vector<size_t> id_inputs;
    DistinctIds distinct;
    std::vector<Positions> inputs;  // one per id input
    // The tables in which these ids are looked up.
    std::vector<RowProbe> probes;
  };
  // A thread's part of a batch: to divide the ids of a lookup among their
  // stripes, or to look up a group of them.
  struct Part {
    static constexpr size_t kDivision = SIZE_MAX;

    Lookup* lookup;
    size_t group;
  };
  // The labels of an output, the weights of its losses, and what its loss makes
  // of the batch beside them.
  struct Compared {
    explicit Compared(const LossSpec& spec) : loss(spec) {}

    Loss loss;
    // Batch::columns that the loss reads.
    std::vector<size_t> columns;
    std::vector<const ExampleValues*> values;  // columns of this batch
    Comparison comparison;
    size_t labels = 0;
    size_t weights = 0;
    size_t integers = 0;
    size_t numbers = 0;
    std::vector<float> products;  // weights of a named output
  };
  struct Ids {
    size_t offsets = 0;
    size_t weights = 0;
  };
  struct Table {
    size_t lookup = 0;
    int64_t width = 0;
    bool is_on_device = false;
    size_t num_rows = 0;  // number of those that the batch reads
    // Rows on the host.
    absl::Span<const uint64_t> ids = {};
    // Rows on the device: what DeviceRows::Probe() has written, in an array
    // that may be longer, and their numbers, on the host and in the pack.
    std::vector<int32_t> probed;
    absl::Span<const int32_t> numbers = {};
    size_t packed_numbers = 0;
    RowBlocks blocks = {};
    // Rows on the host: their start in the array of all.
    size_t offset = 0;
  };

  const Lookup& SourceOf(const Lookup& lookup) const {
    return lookups_[lookup.source];
  }
  Lookup& SourceOf(const Lookup& lookup) { return lookups_[lookup.source]; }
  void AddLookup(const std::vector<size_t>& id_inputs);
  // Returns the first lookup that has the ids of lookup `index`.
  size_t FindSource(const InputViews& inputs, size_t index) const;
  // Makes ids distinct and looks them up in `tables`.
  void LookUp(const InputViews& inputs, DeviceRows* tables);
  void Begin(const InputViews& inputs, Lookup& lookup);
  void DoPart(const InputViews& inputs, const DeviceRows* tables,
              const Part& part);
  // Finds the rows of all tables.
  absl::Status FindRows(DeviceRows* tables);
  void PlaceRows();
  // Returns the inputs of `batch`, in views that stay until the next call.
  InputViews ViewsOf(const Batch& batch);
  void PackInputs(const InputViews& inputs);
  // Sends what has been packed.
  absl::Status Send();
  void AddComparisons();
  void PackLabels(const Batch& batch);
  void PackComparison(const Batch& batch, size_t output);
  void PackPlaces(const InputViews& inputs, Lookup& lookup);
  void PackNothing(const Lookup& lookup);
  absl::Status ReserveRows();

  const Graph& graph_;
  Device& device_;
  int64_t examples_ = 0;
  std::vector<absl::Span<const float>> dense_views_;
  std::vector<IdsView> id_views_;
  // All but rows. The members below are indices of its arrays.
  InputPack pack_;
  std::vector<size_t> dense_;
  std::vector<Compared> compared_;  // one per output
  std::vector<Ids> ids_;
  std::deque<Lookup> lookups_;
  std::vector<absl::Span<const uint64_t>> looked_up_;  // memory of Begin()
  std::vector<Part> parts_;
  std::vector<Table> tables_;
  std::vector<RowLookup> row_lookups_;  // one per table
  // The rows of all tables that are on the host, so that one copy takes all.
  std::vector<Rows> rows_on_host_;
  size_t row_elements_ = 0;
  Array<float> host_rows_;
  Array<float> device_rows_;  // empty on the CPU
};

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_STAGED_INPUTS_H_
