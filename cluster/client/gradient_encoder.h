#ifndef PARASOL_CLUSTER_CLIENT_GRADIENT_ENCODER_H_
#define PARASOL_CLUSTER_CLIENT_GRADIENT_ENCODER_H_

#include <cstddef>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "cluster/client/shard_request.h"
#include "ml/compression/top_k.h"
#include "proto/job.pb.h"

namespace parasol {

// Turns the gradients of pushes into what travels: 16-bit floats, or only the
// largest elements. What is left out of a variable's gradient is kept here and
// added to its next one. Thread-safe.
class GradientEncoder {
 public:
  // `push_share` in (0, 1]. `elements` of each variable.
  GradientEncoder(job::Encoding encoding, double push_share,
                  std::vector<size_t> elements);

  // Whether Encode() has anything to do: else gradients travel from where they
  // are.
  bool encodes() const { return encoding_ != job::FLOAT32 || push_share_ < 1; }

  // Sets payload, encoding, bytes and what is kept of each range of a kPush
  // request. Once for each request: from then on the payload is all that is
  // known of what it sends.
  void Encode(ShardRequest& request) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Sparsify(ShardRequest& request) ABSL_LOCKS_EXCLUDED(mu_);

  const job::Encoding encoding_;
  const double push_share_;
  const std::vector<size_t> elements_;

  absl::Mutex mu_;
  TopK top_k_ ABSL_GUARDED_BY(mu_);
  // Of each variable that has been pushed.
  std::vector<std::vector<float>> residuals_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CLIENT_GRADIENT_ENCODER_H_
