#include "serving/version_policy.h"

#include <optional>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::Optional;

ListedCheckpoint At(int64_t step, int64_t created = 1) {
  return {.step = step, .created_unix_micros = created};
}

TEST(VersionPolicyTest, TheNewestIsServed) {
  VersionPolicy policy(std::nullopt);
  EXPECT_EQ(policy.Next({}), std::nullopt);
  EXPECT_THAT(policy.Next({At(1), At(2)}), Optional(At(2)));
  policy.Serve(At(2));
  EXPECT_EQ(policy.Next({At(1), At(2)}), std::nullopt);
  EXPECT_THAT(policy.Next({At(1), At(2), At(3)}), Optional(At(3)));
}

TEST(VersionPolicyTest, ACheckpointThatWasReplacedIsLoadedAgain) {
  VersionPolicy policy(std::nullopt);
  policy.Serve(At(2));
  EXPECT_THAT(policy.Next({At(1), At(2, 7)}), Optional(At(2, 7)));
}

TEST(VersionPolicyTest, ARefusedOneHasNoOtherTurnUntilItIsReplaced) {
  VersionPolicy policy(std::nullopt);
  policy.Serve(At(2));
  EXPECT_TRUE(policy.Refuse(At(3), absl::DataLossError("damaged")));
  EXPECT_FALSE(policy.Refuse(At(3), absl::DataLossError("damaged")));
  EXPECT_EQ(policy.Next({At(2), At(3)}), std::nullopt);
  EXPECT_THAT(policy.Next({At(2), At(3, 7)}), Optional(At(3, 7)));
  EXPECT_THAT(policy.States(), ElementsAre(Field(&VersionState::version, 2),
                                           Field(&VersionState::version, 3)));
  policy.Forget({At(2), At(3, 7)});
  EXPECT_THAT(policy.States(), ElementsAre(Field(&VersionState::version, 2)));
}

TEST(VersionPolicyTest, ThePrunedServedOneStaysWhileANewerOneIsDamaged) {
  VersionPolicy policy(std::nullopt);
  policy.Serve(At(2));
  ListedCheckpoint damaged = {.step = 3, .damaged = true};
  EXPECT_EQ(policy.Next({At(1), damaged}), std::nullopt);
}

TEST(VersionPolicyTest, RemovingTheNewestGoesBack) {
  VersionPolicy policy(std::nullopt);
  policy.Serve(At(2));
  EXPECT_THAT(policy.Next({At(1)}), Optional(At(1)));
  // A directory that is not there at the moment changes nothing.
  EXPECT_EQ(policy.Next({}), std::nullopt);
}

TEST(VersionPolicyTest, ThePinnedStepAloneIsServed) {
  VersionPolicy policy(1);
  EXPECT_THAT(policy.Next({At(1), At(2)}), Optional(At(1)));
  policy.Serve(At(1));
  EXPECT_EQ(policy.Next({At(1), At(2)}), std::nullopt);
}

}  // namespace
}  // namespace parasol
