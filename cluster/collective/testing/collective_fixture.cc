#include "cluster/collective/testing/collective_fixture.h"

#include <thread>
#include <utility>

#include "absl/time/time.h"
#include "base/log.h"

namespace parasol {

CollectiveFixture::CollectiveFixture(MakeEndpoint make, size_t ranks)
    : make_(std::move(make)), addresses_(ranks) {
  for (std::string& address : addresses_) endpoints_.push_back(make_(&address));
}

CollectiveGroup CollectiveFixture::GroupOf(const Layout& layout, int64_t epoch,
                                           int rank) const {
  CollectiveGroup group;
  group.epoch = epoch;
  group.secret = "of the test";
  group.own_rank = rank;
  for (size_t i = 0; i < layout.size(); ++i) {
    group.ranks.push_back({.address = addresses_[i], .replicas = layout[i]});
  }
  return group;
}

void CollectiveFixture::Run(const Layout& layout, const Body& body) {
  ++epoch_;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < static_cast<int>(layout.size()); ++rank) {
    threads.emplace_back([this, &layout, &body, rank] {
      absl::StatusOr<std::unique_ptr<Collective>> joined =
          endpoint(rank).Join(GroupOf(layout, epoch_, rank), absl::Seconds(60));
      CHECK(joined.ok()) << joined.status();
      body(**joined, rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace parasol
