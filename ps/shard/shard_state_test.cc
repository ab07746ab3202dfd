#include "ps/shard/shard_state.h"

#include <atomic>
#include <filesystem>
#include <thread>

#include "base/status_matchers.h"
#include "gtest/gtest.h"
#include "ps/testing/parameter_server_fixture.h"

namespace parasol::parameter_server_testing {
namespace {

// Another ps starts, and looks for what killed ones have left.
TEST(ShardStateTest, ANewFolderIsNotTakenForAStaleOne) {
  std::atomic<bool> is_over = false;
  std::thread others([&is_over] {
    while (!is_over) ShardState::RemoveStale();
  });
  for (int i = 0; i < 3000; ++i) {
    const auto state = ShardState::Create(LoadOrder());
    EXPECT_OK(state.status());
    if (!state.ok()) break;
    EXPECT_TRUE(std::filesystem::is_directory(state->directory()));
  }
  is_over = true;
  others.join();
}

}  // namespace
}  // namespace parasol::parameter_server_testing
