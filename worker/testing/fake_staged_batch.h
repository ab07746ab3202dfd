#ifndef PARASOL_WORKER_TESTING_FAKE_STAGED_BATCH_H_
#define PARASOL_WORKER_TESTING_FAKE_STAGED_BATCH_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "ml/model/model.h"

namespace parasol {

// The staged batch of a fake model: the batch itself and, if the model has a
// table 0, the batch's rows of that table, of one element each.
class FakeStagedBatch : public StagedBatch {
 public:
  absl::Span<const Rows> rows() const override { return rows_; }

  void StageRows(std::vector<uint64_t> of_batch) {
    ids = std::move(of_batch);
    values.assign(ids.size(), 0);
    rows_ = {{.table = 0, .ids = ids, .values = absl::MakeSpan(values)}};
  }

  const Batch* batch = nullptr;
  std::vector<uint64_t> ids;
  std::vector<float> values;

 private:
  std::vector<Rows> rows_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_TESTING_FAKE_STAGED_BATCH_H_
