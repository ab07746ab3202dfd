#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/log.h"
#include "cluster/collective/collective.h"
#include "cluster/collective/socket_endpoint.h"
#include "tests/benchmark/collective/rank_order.h"
#include "tests/benchmark/collective/rank_timing.h"

namespace parasol {
namespace {

std::unique_ptr<Collective> Join(const RankOrder& order,
                                 SocketEndpoint& endpoint) {
  Publish(order, absl::StrCat(order.host, ":", endpoint.port()));
  CollectiveGroup group;
  group.epoch = 1;
  group.own_rank = order.rank;
  for (int rank = 0; rank < order.ranks; ++rank) {
    group.ranks.push_back({AwaitPublished(order, rank), {rank}});
  }
  auto collective = endpoint.Join(group, absl::Seconds(30));
  CHECK(collective.ok()) << collective.status();
  return *std::move(collective);
}

void Reduce(const RankOrder& order, const SocketEndpoint::Options& options,
            bool in_place) {
  auto endpoint = SocketEndpoint::Start(order.host, 0, options);
  CHECK(endpoint.ok()) << endpoint.status();
  const std::unique_ptr<Collective> collective = Join(order, **endpoint);
  for (const size_t bytes : order.bytes) {
    const size_t count = bytes / sizeof(float);
    std::vector<float> ordinary(in_place ? 0 : 2 * count);
    const std::shared_ptr<float[]> given =
        in_place ? collective->AllocateContribution(count) : nullptr;
    float* const values = in_place ? given.get() : ordinary.data();
    float* const sums = in_place ? values : values + count;
    const auto reduce = [&] {
      collective->AllReduce({{order.rank, {values, count}}}, {sums, count},
                            [](const absl::Status&) {});
      const absl::Status status = collective->Await();
      CHECK(status.ok()) << status;
    };
    std::fill_n(values, count, ContributionOfRank(order.rank));
    reduce();
    CheckSums(sums, count, order.ranks);
    // So that later rounds in place don't overflow.
    std::fill_n(values, count, 0);
    TimeRounds(bytes, order.rank == 0, reduce);
  }
}

}  // namespace

void ReduceShared(const RankOrder& order, bool in_place) {
  SocketEndpoint::Options options;
  options.shared_memory = true;
  Reduce(order, options, in_place);
}

void ReduceOverSockets(const RankOrder& order, SocketSums sums) {
  SocketEndpoint::Options options;
  options.shared_memory = false;
  options.piece_lanes = sums == SocketSums::kLanes;
  if (sums == SocketSums::kOwnerSlices) {
    options.protocol.algorithm = ReductionAlgorithm::kOwnerSlices;
  }
  Reduce(order, options, /*in_place=*/true);
}

}  // namespace parasol
