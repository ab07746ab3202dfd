#include "worker/group/gradient_packs.h"

#include <cstddef>
#include <vector>

#include "gtest/gtest.h"

namespace parasol {
namespace {

TEST(GradientPacksTest, APackIsClosedOnceItHasMoreBytesThanTheLimit) {
  const GradientPacks packs({100, 1, 3, 2}, /*bytes_per_pack=*/16);
  ASSERT_EQ(packs.count(), 2);
  // 8 bytes, then 20.
  EXPECT_EQ(packs.elements(0), 5);
  EXPECT_EQ(packs.variables(0), 2);
  EXPECT_EQ(packs.place(3).first, 0);
  EXPECT_EQ(packs.place(2).first, 2);
  // 4 bytes, then 404.
  EXPECT_EQ(packs.elements(1), 101);
  EXPECT_EQ(packs.place(1).pack, 1);
  EXPECT_EQ(packs.place(0).first, 1);
}

TEST(GradientPacksTest, WithoutALimitAllVariablesAreOnePack) {
  const GradientPacks packs({100, 1, 3}, /*bytes_per_pack=*/0);
  ASSERT_EQ(packs.count(), 1);
  EXPECT_EQ(packs.elements(0), 104);
  EXPECT_EQ(packs.variables(0), 3);
}

TEST(GradientPacksTest, APackReachesFromItsFirstToItsLastVariable) {
  // The one without elements is frozen.
  const GradientPacks packs({2, 3, 0, 3, 0}, /*bytes_per_pack=*/16);
  ASSERT_EQ(packs.count(), 2);
  EXPECT_EQ(packs.range(0), (VariableRange{1, 4}));
  EXPECT_EQ(packs.range(1), (VariableRange{0, 1}));
}

TEST(GradientPacksTest, AModelWithoutVariablesHasNoPacks) {
  EXPECT_EQ(GradientPacks({}, 0).count(), 0);
  EXPECT_EQ(GradientPacks({}, 8).count(), 0);
}

TEST(GradientPacksTest, AVariableIsFoundInItsPack) {
  const GradientPacks packs({2, 3}, 0);
  const std::vector<float> pack = {1, 2, 3, 4, 5};
  EXPECT_EQ(packs.ValuesOf(1, pack), absl::MakeConstSpan(pack).first(3));
  EXPECT_EQ(packs.ValuesOf(0, pack), absl::MakeConstSpan(pack).subspan(3));
}

}  // namespace
}  // namespace parasol
