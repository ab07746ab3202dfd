#ifndef PARASOL_CLUSTER_COLLECTIVE_PROTOCOL_COLLECTIVE_H_
#define PARASOL_CLUSTER_COLLECTIVE_PROTOCOL_COLLECTIVE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cluster/collective/collective.h"
#include "cluster/collective/operation.h"
#include "cluster/collective/operation_spec.h"

namespace parasol {

// The calls of a Collective as operations of a GroupProtocol, over whatever
// carries its frames.
class ProtocolCollective : public Collective {
 public:
  void AllReduce(std::vector<Contribution> contributions, absl::Span<float> sum,
                 Done done) override;
  void ReduceScatter(std::vector<Contribution> contributions, size_t count,
                     absl::Span<float> slice, Done done) override;
  void AllGather(absl::string_view own, std::vector<std::string>* gathered,
                 Done done) override;
  void Broadcast(int source, const std::vector<int>& receivers,
                 absl::Span<std::byte> bytes, Done done) override;

 private:
  // Begins an operation with GroupProtocol::Begin().
  virtual void Begin(const OperationSpec& spec, OperationMemory memory,
                     Done done) = 0;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_COLLECTIVE_PROTOCOL_COLLECTIVE_H_
