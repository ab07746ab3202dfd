#ifndef PARASOL_CLUSTER_COLLECTIVE_TESTING_TEST_PLANNER_H_
#define PARASOL_CLUSTER_COLLECTIVE_TESTING_TEST_PLANNER_H_

#include <functional>
#include <string>
#include <utility>

#include "cluster/collective/plan/all_reduce_planner.h"

namespace parasol {

// A planner that a function is.
class TestPlanner : public AllReducePlanner {
 public:
  using Plan = std::function<CollectivePlan(const Reduction&, int rank)>;
  explicit TestPlanner(Plan plan) : plan_(std::move(plan)) {}

  std::string name() const override { return "test"; }
  CollectivePlan AllReduce(const Reduction& reduction,
                           int rank) const override {
    return plan_(reduction, rank);
  }

 private:
  const Plan plan_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_COLLECTIVE_TESTING_TEST_PLANNER_H_
