#include "storage/checkpoint_name.h"

#include <filesystem>
#include <optional>
#include <string>

#include "base/status_matchers.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

TEST(CheckpointNameTest, AStepAndItsNameAreOneToOne) {
  for (const int64_t step : {int64_t{0}, int64_t{1200}, INT64_MAX}) {
    EXPECT_EQ(StepOfName(CheckpointName(step)), step);
  }
  EXPECT_EQ(CheckpointName(1200), "ckpt-000000001200");
  for (const char* name :
       {"ckpt-1200", "ckpt-00000000000x", "ckpt-0000000001200",
        "ckpt--00000000012", "checkpoint", ""}) {
    EXPECT_EQ(StepOfName(name), std::nullopt) << name;
  }
}

TEST(CheckpointNameTest, APlainNameLeadsNowhereElse) {
  for (const char* name : {"a", "a.b", "a..", "MANIFEST", " "}) {
    EXPECT_TRUE(IsPlainName(name)) << name;
  }
  for (const absl::string_view name :
       {absl::string_view(""), absl::string_view("."), absl::string_view(".."),
        absl::string_view(".a"), absl::string_view("a/b"),
        absl::string_view("/a"), absl::string_view("a\0b", 3),
        absl::string_view("a?endpoint_override=b")}) {
    EXPECT_FALSE(IsPlainName(name)) << name;
  }
}

TEST(CheckpointNameTest, AFileOfAnotherCheckpointIsBesideIt) {
  const auto own = ParseListedName("x.sst");
  ASSERT_TRUE(own.has_value());
  EXPECT_EQ(own->step, std::nullopt);
  EXPECT_EQ(own->file, "x.sst");
  const auto other = ParseListedName("ckpt-000000000005/x.sst");
  ASSERT_TRUE(other.has_value());
  EXPECT_EQ(other->step, 5);
  EXPECT_EQ(other->file, "x.sst");
  for (const char* name :
       {"", "/x", "a/x", "../x", "ckpt-5/x", "ckpt-000000000005/",
        "ckpt-000000000005/.x", "ckpt-000000000005/a/x",
        "ckpt-000000000005/../x", "ckpt-000000000005//x",
        "./ckpt-000000000005/x", "ckpt-000000000005/x?a=b"}) {
    EXPECT_FALSE(ParseListedName(name).has_value()) << name;
  }
  EXPECT_EQ(FileNameOf("x.sst"), "x.sst");
  EXPECT_EQ(FileNameOf("ckpt-000000000005/x.sst"), "x.sst");
  const std::string ckpt7 = "ckpt-000000000007";
  const std::string listed = "ckpt-000000000005/x.sst";
  EXPECT_EQ(ListedPath("/d/" + ckpt7, "x.sst"), "/d/" + ckpt7 + "/x.sst");
  EXPECT_EQ(ListedPath("/d/" + ckpt7, listed), "/d/" + listed);
  EXPECT_EQ(ListedPath("/d/" + ckpt7 + "/", listed), "/d/" + listed);
  EXPECT_EQ(ListedPath(ckpt7, listed), listed);
  EXPECT_EQ(ListedPath(".", listed), "./../" + listed);
  EXPECT_EQ(ListedPath("/d/best", listed), "/d/best/../" + listed);
  EXPECT_EQ(ListedPath("/" + ckpt7, listed), "/" + ckpt7 + "/../" + listed);
  const std::string link = testing::TempDir() + "/" + ckpt7;
  std::filesystem::remove(link);
  std::filesystem::create_directory_symlink("/d/" + ckpt7, link);
  EXPECT_EQ(ListedPath(link, listed), link + "/../" + listed);
  for (const char* end : {"?region=r", "/?region=r"}) {
    EXPECT_EQ(ListedPath("s3://b/run/" + ckpt7 + end, listed),
              "s3://b/run/" + listed + "?region=r");
  }
}

TEST(CheckpointNameTest, ADirectoryOfAnotherStepIsDamage) {
  EXPECT_OK(CheckStepOfName("/c/ckpt-000000000010", 10));
  EXPECT_OK(CheckStepOfName("/c/.tmp-ckpt-000000000010-0", 11));
  EXPECT_OK(CheckStepOfName("other", 11));
  for (const char* directory :
       {"/c/ckpt-000000000010", "/c/ckpt-000000000010/", "ckpt-000000000010"}) {
    EXPECT_THAT(CheckStepOfName(directory, 11),
                StatusIs(absl::StatusCode::kDataLoss,
                         testing::HasSubstr("of step 11")));
  }
}

}  // namespace
}  // namespace parasol
