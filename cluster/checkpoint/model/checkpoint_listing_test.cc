#include "cluster/checkpoint/model/checkpoint_listing.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/status_matchers.h"
#include "cluster/checkpoint/model/testing/model_checkpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A manifest is read a second time, to say what is wrong with it. Meanwhile it
// may be whole again, or gone.
TEST(CheckpointListingTest, OnlyWhatIsStillDamagedIsVisited) {
  const std::string directory = EmptyTestDirectory();
  std::string manifest;
  for (const int64_t step : {10, 20, 30}) {
    ModelCheckpoint model;
    model.step = step;
    ASSERT_OK(model.Write(directory));
    manifest = model.PathIn(directory) + "/MANIFEST";
    ASSERT_TRUE(fs::exists(manifest));
    if (step == 10) continue;
    fs::copy(manifest, manifest + ".whole");
    std::ofstream(manifest) << "damaged";
  }
  const CheckpointStore store(directory);
  ASSERT_OK_AND_ASSIGN(
      const std::vector<ListedCheckpoint> listing,
      ListCheckpoints(store, [](const auto&) { return true; }));
  ASSERT_EQ(listing.size(), 3);
  const auto visited = [&] {
    std::vector<int64_t> steps;
    VisitDamaged(store, listing,
                 [&steps](const ListedCheckpoint& checkpoint,
                          const absl::Status& damage) {
                   steps.push_back(checkpoint.step);
                   EXPECT_TRUE(absl::IsDataLoss(damage)) << damage;
                 });
    return steps;
  };
  EXPECT_THAT(visited(), ElementsAre(20, 30));
  fs::rename(manifest + ".whole", manifest);
  EXPECT_THAT(visited(), ElementsAre(20));
  fs::remove_all(store.PathOf(20));
  EXPECT_THAT(visited(), IsEmpty());
}

}  // namespace
}  // namespace parasol
