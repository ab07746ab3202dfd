#ifndef PARASOL_CLUSTER_COLLECTIVE_TESTING_COLLECTIVE_FIXTURE_H_
#define PARASOL_CLUSTER_COLLECTIVE_TESTING_COLLECTIVE_FIXTURE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cluster/collective/collective.h"
#include "cluster/collective/collective_group.h"
#include "cluster/collective/testing/contributions.h"

namespace parasol {

// Ranks as threads of the test, each with an endpoint of its own.
class CollectiveFixture {
 public:
  // Returns an endpoint and writes its address.
  using MakeEndpoint =
      std::function<std::unique_ptr<CollectiveEndpoint>(std::string* address)>;

  // Keeps `make`, and so what it holds, for as long as the endpoints.
  CollectiveFixture(MakeEndpoint make, size_t ranks);

  // Returns the group of that epoch as `rank` has it.
  CollectiveGroup GroupOf(const Layout& layout, int64_t epoch, int rank) const;
  CollectiveEndpoint& endpoint(int rank) { return *endpoints_[rank]; }

  // Joins a group of the next epoch at all ranks, then calls `body` for each on
  // a thread of its own. Returns when all have returned and have left.
  using Body = std::function<void(Collective& collective, int rank)>;
  void Run(const Layout& layout, const Body& body);

 private:
  const MakeEndpoint make_;
  std::vector<std::string> addresses_;
  std::vector<std::unique_ptr<CollectiveEndpoint>> endpoints_;
  int64_t epoch_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_COLLECTIVE_TESTING_COLLECTIVE_FIXTURE_H_
