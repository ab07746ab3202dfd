#include "coordinator/layout.h"

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/status_matchers.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

struct Cluster {
  job::Job job;
  std::vector<ShardBoard::Shard> shards;

  uint64_t layout() const { return LayoutOf(job, shards).value(); }
};

wire::PartSpec Part(const std::string& variable, int64_t first,
                    int64_t elements) {
  wire::PartSpec part;
  part.set_variable(variable);
  part.add_variable_shape(12);
  part.set_first_element(first);
  part.set_elements(elements);
  return part;
}

// A variable of 12 elements on two ps, and a table.
Cluster SomeCluster() {
  Cluster cluster;
  cluster.job.mutable_optimizer()->mutable_sgd()->set_learning_rate(.1);
  wire::TableSpec table;
  table.set_name("users");
  table.set_width(4);
  cluster.shards = {{0, "h0:1", {Part("w", 0, 8)}, {table}},
                    {1, "h1:1", {Part("w", 8, 4)}, {table}}};
  return cluster;
}

TEST(Layout, IsTheSameInEveryProcess) {
  // A change here makes every ps load again when its chief is upgraded.
  EXPECT_EQ(SomeCluster().layout(), uint64_t{16102340107815590350u});
}

TEST(Layout, DiffersWithEverythingThatRequestsGoBy) {
  const std::vector<std::function<void(Cluster&)>> changes = {
      [](Cluster&) {},
      [](Cluster& c) {
        c.shards[0].parts[0].set_elements(4);
        c.shards[1].parts[0].set_first_element(4);
        c.shards[1].parts[0].set_elements(8);
      },
      [](Cluster& c) { std::swap(c.shards[0].parts, c.shards[1].parts); },
      [](Cluster& c) { c.shards[0].parts[0].set_variable("v"); },
      [](Cluster& c) { c.shards[0].parts[0].set_id(1); },
      [](Cluster& c) { c.shards[1].ps_index = 4; },
      [](Cluster& c) {
        c.shards.push_back({2, "h2:1", {}});
      },
      [](Cluster& c) { c.shards[0].tables.clear(); },
      [](Cluster& c) { c.shards[0].tables[0].set_width(8); },
      [](Cluster& c) { c.shards[0].tables[0].set_bfloat16(true); },
      [](Cluster& c) {
        c.shards[0].parts[0].mutable_optimizer()->mutable_sgd();
      },
      [](Cluster& c) { c.job.mutable_optimizer()->mutable_adam(); },
      [](Cluster& c) {
        c.job.mutable_optimizer()->mutable_sgd()->set_momentum(.9);
      },
      [](Cluster& c) {
        c.job.mutable_parameter_server()
            ->mutable_synchronous()
            ->set_total_replicas(2);
      },
      [](Cluster& c) {
        c.job.mutable_parameter_server()
            ->mutable_synchronous()
            ->set_total_replicas(3);
      },
  };
  std::set<uint64_t> layouts;
  for (size_t i = 0; i < changes.size(); ++i) {
    Cluster cluster = SomeCluster();
    changes[i](cluster);
    EXPECT_TRUE(layouts.insert(cluster.layout()).second) << "change " << i;
  }
}

TEST(Layout, DoesNotDependOnHyperparametersAndAddresses) {
  Cluster cluster = SomeCluster();
  cluster.job.mutable_optimizer()->mutable_sgd()->set_learning_rate(.01);
  cluster.job.set_seed(7);
  cluster.job.mutable_parameter_server()->set_wire_encoding(job::BFLOAT16);
  cluster.job.mutable_parameter_server()->mutable_bounded_staleness();
  cluster.shards[0].address = "elsewhere:1";
  cluster.shards[0].parts[0].mutable_initializer()->mutable_zeros();
  cluster.shards[0].tables[0].mutable_initializer()->mutable_zeros();
  EXPECT_EQ(cluster.layout(), SomeCluster().layout());
}

TEST(Layout, AnOptimizerThatCantBeMadeIsAnError) {
  Cluster cluster = SomeCluster();
  cluster.job.mutable_optimizer()->mutable_sgd()->set_learning_rate(-1);
  EXPECT_THAT(LayoutOf(cluster.job, cluster.shards),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace parasol
