#include "chief/grown_files.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class GrownFilesTest : public testing::Test {
 protected:
  std::vector<std::string> Look() {
    std::vector<std::string> names;
    for (const GrownFiles::Grown& file :
         files_.Look([this](const std::string& name) -> std::optional<int64_t> {
           const auto size = sizes_.find(name);
           if (size == sizes_.end()) return std::nullopt;
           return size->second;
         })) {
      names.push_back(
          absl::StrCat(file.name, ":", file.taken_bytes, ">", file.bytes));
    }
    return names;
  }

  GrownFiles files_;
  std::map<std::string, int64_t> sizes_;
};

TEST_F(GrownFilesTest, NamesEachFileOnce) {
  files_.Take("a", 0);
  files_.Take("b", 10);
  sizes_ = {{"a", 0}, {"b", 10}};
  EXPECT_THAT(Look(), IsEmpty());
  sizes_ = {{"a", 5}, {"b", 11}};
  EXPECT_THAT(Look(), ElementsAre("a:0>5", "b:10>11"));
  sizes_ = {{"a", 50}, {"b", 110}};
  EXPECT_THAT(Look(), IsEmpty());
}

TEST_F(GrownFilesTest, WhatIsGoneOrSmallerHasNotGrown) {
  files_.Take("a", 10);
  files_.Take("b", 10);
  sizes_ = {{"b", 9}};
  EXPECT_THAT(Look(), IsEmpty());
  sizes_ = {{"a", 11}, {"b", 10}};
  EXPECT_THAT(Look(), ElementsAre("a:10>11"));
}

TEST_F(GrownFilesTest, WatchesTheNewestFiles) {
  for (size_t i = 0; i <= GrownFiles::kWatched; ++i) {
    files_.Take(absl::StrCat(i), 0);
    sizes_[absl::StrCat(i)] = i < 2 ? 1 : 0;
  }
  EXPECT_THAT(Look(), ElementsAre("1:0>1"));
}

}  // namespace
}  // namespace parasol
