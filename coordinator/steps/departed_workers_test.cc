#include "coordinator/steps/departed_workers.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

TEST(DepartedWorkers, AreListedInTheOrderInWhichTheyDeparted) {
  DepartedWorkers workers;
  workers.Add(7, {.completed = 1});
  workers.Add(3, {.completed = 2});
  workers.Add(7, {.completed = 3});
  std::vector<durable::WorkerProgress> progress;
  workers.AddTo(progress);
  ASSERT_EQ(progress.size(), 2u);
  EXPECT_EQ(progress[0].incarnation(), 3u);
  EXPECT_EQ(progress[1].incarnation(), 7u);
  EXPECT_EQ(progress[1].completed_steps(), 3);
}

TEST(DepartedWorkers, TheOneThatDepartedFirstIsForgottenFirst) {
  DepartedWorkers workers;
  for (uint64_t i = 0; i < DepartedWorkers::kMax; ++i) {
    EXPECT_TRUE(workers.Add(i, {.completed = 1}));
  }
  EXPECT_TRUE(workers.Extract(0).has_value());
  EXPECT_TRUE(workers.Add(0, {.completed = 1})) << "departs again";
  EXPECT_FALSE(workers.Add(DepartedWorkers::kMax, {.completed = 1}));
  EXPECT_EQ(workers.size(), DepartedWorkers::kMax);
  EXPECT_EQ(workers.Find(1), nullptr);
  EXPECT_NE(workers.Find(0), nullptr);
}

TEST(DepartedWorkers, OneThatIsExtractedIsNotThereAnyMore) {
  DepartedWorkers workers;
  workers.Add(7, {.completed = 5, .limit = 8});
  const auto worker = workers.Extract(7);
  ASSERT_TRUE(worker.has_value());
  EXPECT_EQ(worker->limit, 8);
  EXPECT_FALSE(workers.Extract(7).has_value());
}

}  // namespace
}  // namespace parasol
