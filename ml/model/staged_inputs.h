#ifndef PARASOL_ML_MODEL_STAGED_INPUTS_H_
#define PARASOL_ML_MODEL_STAGED_INPUTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ml/device/device.h"
#include "ml/input/feature/batch.h"
#include "ml/layer/layer.h"
#include "ml/model/distinct_ids.h"
#include "ml/model/graph.h"
#include "ml/model/input_array.h"
#include "ml/model/model.h"

namespace parasol {

// A batch in the form that a graph's layers read: tensors and weights at
// addresses for the device, ids as positions of rows. Tables in which the same
// inputs are looked up share the work. Not thread-safe.
class StagedInputs : public StagedBatch {
 public:
  // `graph` and `device` must outlive this object.
  StagedInputs(const Graph& graph, Device& device);

  // Looks up the ids of `batch` and starts to copy it to the device. The caller
  // has checked `batch` and keeps it until its pass is over.
  //   InvalidArgument    it has too many different ids for one array.
  //   ResourceExhausted  the device is full.
  absl::Status Load(const Batch& batch);

  absl::Span<const Rows> rows() const override { return rows_; }

  // Starts to copy the rows, which the caller has written, to the device: on
  // the copy-in stream, behind Load()'s copies.
  absl::Status LoadRows();

  int64_t examples() const { return examples_; }
  // Adds the addresses from which a pass reads all but the rows.
  void ListArrays(std::vector<const void*>& arrays) const;
  // Addresses in the device's memory. Null weights stand for 1.
  const float* dense(size_t input) const { return dense_[input].data(); }
  const float* labels() const { return labels_.data(); }
  const float* weights() const { return weights_.data(); }
  // Rows [distinct ids, width] of a table, where the device reads them.
  absl::Span<const float> RowsOf(size_t table) const;
  // The largest number of elements that the rows of all tables may have before
  // their memory grows.
  int64_t row_capacity() const { return host_rows_.size(); }
  // The positions of the ids of `id_input` in `table`, without the rows.
  RowsView View(size_t table, size_t id_input) const;

 private:
  // The distinct ids of some id inputs.
  struct Lookup {
    std::vector<size_t> id_inputs;
    DistinctIds distinct;
    // Positions for each id input of the lookup: on the host, and where the
    // device reads them.
    std::vector<std::vector<int32_t>> positions;
    std::vector<InputArray<int32_t>> staged_positions;
  };
  struct Ids {
    InputArray<int32_t> offsets;
    InputArray<float> weights;
  };
  struct Table {
    size_t lookup = 0;
    int64_t width = 0;
    size_t offset = 0;  // start of its rows in the array of all
  };

  absl::Status LoadIds(const IdFeature& feature, Ids& ids);
  absl::Status LookUp(const Batch& batch, Lookup& lookup);
  absl::Status PlaceRows(size_t table);
  absl::Status ReserveRows();

  const Graph& graph_;
  Device& device_;
  int64_t examples_ = 0;
  std::vector<InputArray<float>> dense_;
  InputArray<float> labels_;
  InputArray<float> weights_;
  std::vector<Ids> ids_;
  std::vector<Lookup> lookups_;
  std::vector<Table> tables_;
  std::vector<Rows> rows_;
  // The rows of all tables, so that one copy takes all.
  size_t row_elements_ = 0;
  Array<float> host_rows_;
  Array<float> device_rows_;  // empty on the CPU
};

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_STAGED_INPUTS_H_
