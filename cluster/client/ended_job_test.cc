#include "cluster/client/ended_job.h"

#include <filesystem>
#include <string>

#include "base/status_matchers.h"
#include "gtest/gtest.h"
#include "storage/checkpoint_store.h"
#include "storage/directory_owner.h"

namespace parasol {
namespace {

TEST(EndedJobTest, TheRegistrationIsOfTheJobThatHasEnded) {
  const std::string directory = testing::TempDir() + "/ended_job";
  std::filesystem::remove_all(directory);
  EXPECT_FALSE(RegistrationOfEndedJob("").has_value());
  auto store = CheckpointStore::OpenForWriting(directory);
  ASSERT_OK(store);
  ASSERT_OK_AND_ASSIGN(const std::string working, store->Begin(100));
  durable::CheckpointManifest manifest;
  manifest.set_global_step(100);
  manifest.set_run_id("run-a");
  manifest.set_final(true);
  manifest.mutable_job()->set_name("digits");
  ASSERT_OK(store->Commit(working, manifest));
  EXPECT_FALSE(RegistrationOfEndedJob(directory).has_value());
  durable::DirectoryOwner owner;
  owner.set_chief_epoch(1);
  owner.set_released(true);
  ASSERT_OK(WriteOwner(directory, owner));
  const auto registration = RegistrationOfEndedJob(directory);
  ASSERT_TRUE(registration.has_value());
  EXPECT_EQ(registration->job().name(), "digits");
  EXPECT_EQ(registration->run_id(), "run-a");
  EXPECT_EQ(registration->checkpoint_directory(), directory);
}

}  // namespace
}  // namespace parasol
