#include "ml/custom/code_registry.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsNull;
using ::testing::Pointee;

TEST(CodeRegistryTest, ATypeIsFoundByItsName) {
  CodeRegistry<int> registry("loss", "worker");
  registry.Add("quantile", 1);
  registry.Add("ranked", 2);
  EXPECT_THAT(registry.Find("ranked"), Pointee(Eq(2)));
  EXPECT_THAT(registry.Find("rank"), IsNull());
}

TEST(CodeRegistryTest, AnErrorNamesTheTypesThatThereAre) {
  CodeRegistry<int> registry("loss", "worker and evaluator");
  EXPECT_THAT(registry.Lacks("a\nb"),
              HasSubstr("no custom loss \"a\\nb\" (it has: none); start"));
  registry.Add("quantile", 1);
  registry.Add("ranked", 2);
  const std::string lacks = registry.Lacks("quantil");
  EXPECT_THAT(lacks, HasSubstr("(it has: quantile, ranked)"));
  EXPECT_THAT(lacks, HasSubstr("did you mean \"quantile\"?"));
  EXPECT_THAT(lacks, HasSubstr("as worker and evaluator"));
}

TEST(CodeRegistryDeathTest, TwoOfOneNameAreABug) {
  CodeRegistry<int> registry("loss", "worker");
  registry.Add("quantile", 1);
  EXPECT_DEATH(registry.Add("quantile", 2),
               "two are registered as custom loss \"quantile\"");
}

}  // namespace
}  // namespace parasol
