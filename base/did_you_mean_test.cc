#include "base/did_you_mean.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace parasol {
namespace {

const std::vector<std::string> kNames = {
    "units", "activation", "use_bias", "kernel_initializer", "C1", "C12"};

TEST(DidYouMeanTest, SlipsOfAllKindsAreUnderstood) {
  EXPECT_EQ(NearestName("unit", kNames), "units");
  EXPECT_EQ(NearestName("unitss", kNames), "units");
  EXPECT_EQ(NearestName("unist", kNames), "units");
  EXPECT_EQ(NearestName("Units", kNames), "units");
  EXPECT_EQ(NearestName("useBias", kNames), "use_bias");
  EXPECT_EQ(NearestName("kernel_initialiser", kNames), "kernel_initializer");
  EXPECT_EQ(NearestName("c1", kNames), "C1");
}

TEST(DidYouMeanTest, TheNearestOfSeveralIsNamed) {
  EXPECT_EQ(NearestName("C122", {"C1", "C12", "C2"}), "C12");
}

TEST(DidYouMeanTest, ADistanceIsTheNumberOfSlips) {
  EXPECT_EQ(EditDistance("units", "units"), 0);
  EXPECT_EQ(EditDistance("unit", "units"), 1);
  EXPECT_EQ(EditDistance("unist", "units"), 1);
  EXPECT_EQ(EditDistance("kernel", "bias"), 6);
  EXPECT_EQ(EditDistance("", "bias"), 4);
}

TEST(DidYouMeanTest, WhatIsFarIsNotNamed) {
  EXPECT_EQ(NearestName("colour", kNames), "");
  EXPECT_EQ(NearestName("x", kNames), "");
  EXPECT_EQ(NearestName("", kNames), "");
  EXPECT_EQ(NearestName("unit", {}), "");
  EXPECT_EQ(NearestName(std::string(1000, 'u'), kNames), "");
  // Two letters, both of them others.
  EXPECT_EQ(NearestName("ab", {"cd"}), "");
}

TEST(DidYouMeanTest, TheEndOfAnErrorQuotesTheName) {
  EXPECT_EQ(DidYouMean("unit", kNames), "; did you mean \"units\"?");
  EXPECT_EQ(DidYouMean("colour", kNames), "");
  EXPECT_EQ(DidYouMean("agee", {"ag\n"}), "");
  EXPECT_EQ(DidYouMean("agee", {"age\n"}), "; did you mean \"age\\n\"?");
}

}  // namespace
}  // namespace parasol
