#include "cluster/collective/protocol_collective.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "cluster/collective/contribution_memory.h"

namespace parasol {

void ProtocolCollective::AllReduce(std::vector<Contribution> contributions,
                                   absl::Span<float> sum, Done done) {
  CheckContributions(group(), contributions, sum.size());
  OperationSpec spec;
  spec.kind = OperationKind::kAllReduce;
  spec.size = sum.size();
  Begin(spec, {.contributions = std::move(contributions), .sum = sum},
        std::move(done));
}

void ProtocolCollective::ReduceScatter(std::vector<Contribution> contributions,
                                       size_t count, absl::Span<float> slice,
                                       Done done) {
  CheckContributions(group(), contributions, count);
  const int ranks = static_cast<int>(group().ranks.size());
  CHECK_EQ(slice.size(), SliceOf(count, ranks, group().own_rank).count);
  OperationSpec spec;
  spec.kind = OperationKind::kReduceScatter;
  spec.size = count;
  Begin(spec, {.contributions = std::move(contributions), .sum = slice},
        std::move(done));
}

void ProtocolCollective::AllGather(absl::string_view own,
                                   std::vector<std::string>* gathered,
                                   Done done) {
  OperationSpec spec;
  spec.kind = OperationKind::kAllGather;
  spec.own_bytes = own.size();
  Begin(spec, {.own = std::string(own), .gathered = gathered}, std::move(done));
}

void ProtocolCollective::Broadcast(int source,
                                   const std::vector<int>& receivers,
                                   absl::Span<std::byte> bytes, Done done) {
  const int ranks = static_cast<int>(group().ranks.size());
  OperationMemory memory = {.bytes = bytes};
  for (int rank = 0; rank < ranks; ++rank) {
    const bool receives =
        receivers.empty() ||
        std::count(receivers.begin(), receivers.end(), rank) > 0;
    if (receives && rank != source) memory.receivers.push_back(rank);
  }
  const bool takes_part =
      group().own_rank == source ||
      std::count(memory.receivers.begin(), memory.receivers.end(),
                 group().own_rank) > 0;
  OperationSpec spec;
  spec.kind = OperationKind::kBroadcast;
  spec.source = source;
  spec.receivers = FingerprintOf(memory.receivers);
  spec.size = takes_part ? bytes.size() : OperationSpec::kUnknownSize;
  Begin(spec, std::move(memory), std::move(done));
}

}  // namespace parasol
