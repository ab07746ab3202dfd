#include "tool/publish/published_version.h"

#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

PublishedVersion Delta() {
  return {.version = 7,
          .base = 6,
          .format = VersionFormat::kXor,
          .step = 300,
          .run_id = "0123",
          .job = "ratings",
          .type = ElementType::kBfloat16,
          .pytorch_layout = true,
          .files = {{"a.safetensors", uint64_t{1} << 40}, {"index.json", 0}},
          .tensors = {{.info = {.name = "b",
                                .type = ElementType::kBfloat16,
                                .shape = {2, 3}},
                       .sha256 = "bb"},
                      {.info = {.name = "a/\"ids\"",
                                .type = ElementType::kUint64,
                                .shape = {}},
                       .sha256 = "aa"}},
          .base_state = "cc"};
}

TEST(PublishedVersionTest, ManifestSaysWhatItWasMadeOf) {
  const PublishedVersion version = Delta();
  ASSERT_OK_AND_ASSIGN(const PublishedVersion read,
                       ParseManifest(ManifestText(version), "m"));
  EXPECT_EQ(read.version, 7);
  EXPECT_EQ(read.base, 6);
  EXPECT_EQ(read.format, VersionFormat::kXor);
  EXPECT_EQ(read.step, 300);
  EXPECT_EQ(read.run_id, "0123");
  EXPECT_EQ(read.job, "ratings");
  EXPECT_EQ(read.type, ElementType::kBfloat16);
  EXPECT_TRUE(read.pytorch_layout);
  EXPECT_EQ(read.files, version.files);
  EXPECT_EQ(read.base_state, "cc");
  ASSERT_EQ(read.tensors.size(), 2);
  EXPECT_EQ(StateDigest(read.tensors), StateDigest(version.tensors));
  EXPECT_EQ(ManifestText(read).size(), ManifestText(version).size());
}

TEST(PublishedVersionTest, DamagedManifestsAreRefused) {
  const std::string text = ManifestText(Delta());
  ASSERT_OK(ParseManifest(text, "m"));
  const std::pair<std::string, std::string> harms[] = {
      {"\"format_version\": 1", "\"format_version\": 2"},
      {"\"format_version\": 1", "\"other\": 1"},
      {"\"version\": 7", "\"version\": 0"},
      {"\"version\": 7", "\"version\": -7"},
      {"\"version\": 7", "\"version\": 7.5"},
      {"\"version\": 7", "\"version\": 18446744073709551615"},
      {"\"version\": 7", "\"version\": 8"},
      {"\"base_version\": 6", "\"base_version\": null"},
      {"\"base_version\": 6", "\"base_version\": 5"},
      {"\"base_version\": 6", "\"base_version\": []"},
      {"\"format\": \"xor\"", "\"format\": \"or\""},
      {"\"format\": \"xor\"", "\"format\": \"full\""},
      {"\"step\": 300", "\"step\": -1"},
      {"\"step\": 300", "\"step\": \"300\""},
      {"\"step\": 300", "\"step\": 300, \"step\": 301"},
      {"\"job\": \"ratings\"", "\"job\": 3"},
      {"1099511627776", "-1"},
      {"\"index.json\": 0", "\"index.json\": []"},
      {"\"files\"", "\"files\": [], \"other\""},
      {"\"tensors\"", "\"tensors\": [], \"other\""},
      {"[2,3]", "[2,-3]"},
      {"[2,3]", "[3,2]"},
      {"[2,3]", "{\"2\":3}"},
      {"[2,3]", "[2,\"3\"]"},
      {"\"sha256\":\"bb\"", "\"sha256\":\"bc\""},
      {"\"sha256\":\"bb\"", "\"sha256\":null"},
      {"uint64", "int64"},
      {"\"tensors\"", "\"other\""}};
  for (const auto& [from, to] : harms) {
    SCOPED_TRACE(absl::StrCat(from, " -> ", to));
    const std::string harmed = absl::StrReplaceAll(text, {{from, to}});
    ASSERT_NE(harmed, text);
    EXPECT_THAT(ParseManifest(harmed, "DIR/m").status(),
                StatusIs(absl::StatusCode::kDataLoss, StartsWith("DIR/m: ")));
  }
  // The last two are its last bracket and a newline.
  for (size_t size = 0; size + 2 < text.size(); ++size) {
    EXPECT_THAT(ParseManifest(text.substr(0, size), "m").status(),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("is damaged")));
  }
  for (const char* other : {"[]", "7", "{}"}) {
    EXPECT_THAT(ParseManifest(other, "m").status(),
                StatusIs(absl::StatusCode::kDataLoss));
  }
}

// Six values each: more than a member of JSON has elsewhere.
TEST(PublishedVersionTest, ManifestOfManyTensorsIsReadAgain) {
  PublishedVersion version = {.version = 1};
  for (int i = 0; i < 40'000; ++i) {
    version.tensors.push_back({.info = {.name = absl::StrCat("tensor", i),
                                        .type = ElementType::kFloat32,
                                        .shape = {1, i}},
                               .sha256 = std::string(64, 'a')});
  }
  ASSERT_OK_AND_ASSIGN(const PublishedVersion read,
                       ParseManifest(ManifestText(version), "m"));
  EXPECT_EQ(read.tensors.size(), 40'000);
}

TEST(PublishedVersionTest, NamesAreOfVersionsOnlyAsTheyAreWritten) {
  EXPECT_EQ(VersionName(12), "weight_v000012");
  EXPECT_EQ(VersionOfName("weight_v000012"), 12);
  EXPECT_EQ(VersionOfName(VersionName(12'345'678)), 12'345'678);
  for (const char* name :
       {"weight_v12", "weight_v0000012", "weight_v000000", "weight_v-00001",
        "weight_v00001x", "weight_v", "weights_v000012", ".publisher"}) {
    EXPECT_EQ(VersionOfName(name), std::nullopt) << name;
  }
}

TEST(PublishedVersionTest, IndexNamesTheTensorsOfTheFile) {
  EXPECT_THAT(IndexText(Delta(), {"b"}, 99),
              AllOf(HasSubstr("\"total_size\": 99"),
                    HasSubstr("\"base_version\": \"000006\""),
                    HasSubstr("\"delta_encoding\": \"xor\""),
                    HasSubstr("\"b\": \"model-00001-of-00001.safetensors\"")));
}

}  // namespace
}  // namespace parasol
