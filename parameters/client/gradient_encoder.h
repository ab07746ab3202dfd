#ifndef PARASOL_PARAMETERS_CLIENT_GRADIENT_ENCODER_H_
#define PARASOL_PARAMETERS_CLIENT_GRADIENT_ENCODER_H_

#include <cstddef>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "ml/compression/top_k.h"
#include "parameters/client/shard_operation.h"
#include "proto/job.pb.h"

namespace parasol {

// The encoder of variables' operations. Pushed gradients travel as 16-bit
// floats, or only their largest elements. The rest of a variable's gradient is
// kept here and added to its next one. Thread-safe.
class GradientEncoder {
 public:
  // `push_share` is in (0, 1]. `elements` is the number of elements of each
  // variable.
  GradientEncoder(job::Encoding encoding, double push_share,
                  std::vector<size_t> elements);

  // Returns true if Encode() computes anything. If not, gradients are sent from
  // the caller's memory.
  bool encodes() const { return encoding_ != job::FLOAT32 || push_share_ < 1; }

  // Returns the operation, which must be of ranges, with its encoding and, if
  // it is a push that is not exact, with its gradient encoded. Call it once for
  // each push: what it leaves out of the gradient is kept for the next one.
  EncodedOperation Encode(ShardOperation operation) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void EncodeAll(EncodedOperation& push) const;
  void Sparsify(EncodedOperation& push) ABSL_LOCKS_EXCLUDED(mu_);

  const job::Encoding encoding_;
  const double push_share_;
  const std::vector<size_t> elements_;

  absl::Mutex mu_;
  TopK top_k_ ABSL_GUARDED_BY(mu_);
  // The kept rest of the gradient of each variable that has been pushed.
  std::vector<std::vector<float>> residuals_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_PARAMETERS_CLIENT_GRADIENT_ENCODER_H_
