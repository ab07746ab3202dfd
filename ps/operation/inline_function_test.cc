#include "ps/operation/inline_function.h"

#include <memory>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using Length = InlineFunction<size_t(std::string), 32>;

TEST(InlineFunctionTest, CallsWhatItKeeps) {
  const size_t more = 3;
  const Length length = [more](const std::string& text) {
    return text.size() + more;
  };
  EXPECT_EQ(length("four"), 7u);
  EXPECT_TRUE(static_cast<bool>(length));
}

TEST(InlineFunctionTest, IsEmptyWithoutACallable) {
  EXPECT_FALSE(static_cast<bool>(Length()));
  EXPECT_FALSE(static_cast<bool>(Length(nullptr)));
}

TEST(InlineFunctionTest, KeepsItsCallableAliveAsOftenAsThereAreCopies) {
  auto kept = std::make_shared<int>(5);
  const std::weak_ptr<int> watched = kept;
  using Read = InlineFunction<int(), 32>;
  Read first = [kept = std::move(kept)] { return *kept; };
  Read copy = first;
  EXPECT_EQ(watched.use_count(), 2);
  Read moved = std::move(first);
  EXPECT_EQ(watched.use_count(), 2);
  EXPECT_EQ(moved(), 5);
  moved = nullptr;
  EXPECT_EQ(watched.use_count(), 1);
  EXPECT_EQ(copy(), 5);
  copy = [] { return 6; };
  EXPECT_TRUE(watched.expired());
  EXPECT_EQ(copy(), 6);
}

TEST(InlineFunctionTest, AssignsItselfToItself) {
  const auto kept = std::make_shared<int>(7);
  InlineFunction<int(), 32> read = [kept] { return *kept; };
  auto& same = read;
  read = same;
  EXPECT_EQ(read(), 7);
  EXPECT_EQ(kept.use_count(), 2);
}

TEST(InlineFunctionTest, PassesArgumentsThatCanOnlyBeMoved) {
  const InlineFunction<int(std::unique_ptr<int>), 16> read =
      [](std::unique_ptr<int> number) { return *number; };
  EXPECT_EQ(read(std::make_unique<int>(8)), 8);
}

TEST(InlineFunctionTest, ChangesItsState) {
  const InlineFunction<int(), 16> count = [n = 0]() mutable { return ++n; };
  EXPECT_EQ(count(), 1);
  EXPECT_EQ(count(), 2);
}

TEST(InlineFunctionTest, ALargerOneKeepsASmallerOne) {
  const InlineFunction<int(), 16> inner = [] { return 9; };
  const InlineFunction<int(), 48> outer = inner;
  EXPECT_EQ(outer(), 9);
}

}  // namespace
}  // namespace parasol
