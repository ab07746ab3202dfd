#ifndef PARASOL_WORKER_FAKE_STAGED_BATCH_H_
#define PARASOL_WORKER_FAKE_STAGED_BATCH_H_

#include "absl/types/span.h"
#include "ml/model/model.h"

namespace parasol {

// What a fake model without tables stages: the batch itself.
class FakeStagedBatch : public StagedBatch {
 public:
  absl::Span<const Rows> rows() const override { return {}; }

  const Batch* batch = nullptr;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_FAKE_STAGED_BATCH_H_
