#include <memory>
#include <string>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "cluster/collective/custom/custom_all_reduce.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;
using ::testing::IsNull;
using ::testing::NotNull;

job::MultiWorkerMirrored WithTree(const std::string& width) {
  job::MultiWorkerMirrored strategy;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "custom { type: 'tree' parameter { name: 'width' value: '" + width +
          "' } }",
      &strategy));
  return strategy;
}

TEST(TreeTest, EveryRankHasTheSums) {
  for (const std::string width : {"1", "2", "3", "1024"}) {
    ASSERT_OK_AND_ASSIGN(const std::shared_ptr<const AllReducePlanner> tree,
                         MakeAllReducePlanner(WithTree(width)));
    ReplicaLayout layout;
    for (int rank = 0; rank < 9; ++rank) {
      layout.push_back({rank});
      EXPECT_OK(CheckPlanner(*tree, layout)) << width;
    }
    // Others compute the replicas of lost ranks.
    EXPECT_OK(CheckPlanner(*tree, {{0, 3}, {1, 2, 4}}));
    EXPECT_OK(CheckPlanner(*tree, {{}, {0, 1}, {}, {2}}));
  }
}

TEST(TreeTest, AWidthThatIsNoneIsRefused) {
  EXPECT_THAT(MakeAllReducePlanner(WithTree("0")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("custom all-reduce tree: parameter width")));
}

TEST(TreeTest, AnotherTypeIsNotThere) {
  job::MultiWorkerMirrored strategy = WithTree("2");
  strategy.mutable_custom()->set_type("treee");
  EXPECT_THAT(MakeAllReducePlanner(strategy),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("no custom all-reduce \"treee\" (it has: "
                                 "tree)")));
}

TEST(TreeTest, WithoutACustomOneTheJobsCommunicationCounts) {
  job::MultiWorkerMirrored strategy;
  EXPECT_THAT(MakeAllReducePlanner(strategy), IsOkAndHolds(IsNull()));
  strategy.set_communication(job::MultiWorkerMirrored::RING);
  EXPECT_THAT(MakeAllReducePlanner(strategy), IsOkAndHolds(NotNull()));
}

}  // namespace
}  // namespace parasol
