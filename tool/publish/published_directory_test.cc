#include "tool/publish/published_directory.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tool/publish/testing/publisher_fixture.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using PublishedDirectoryTest = PublisherFixture;

TEST_F(PublishedDirectoryTest, DamagedNewestManifestIsSaid) {
  {
    ASSERT_OK_AND_ASSIGN(Publisher publisher, Publisher::Open(Options()));
    ASSERT_OK(PublishNext(publisher, 0));
  }
  const std::string path = Out("weight_v000001/manifest.json");
  const std::string text = TextOf(path);
  std::string other = text;
  other.replace(other.find("float32\",\"shape"), 7, "float64");
  for (const std::string& damaged :
       {text.substr(0, text.size() / 2), std::string("[]"), std::string("{}"),
        other}) {
    std::ofstream(path) << damaged;
    EXPECT_THAT(Publisher::Open(Options()).status(),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr(path)));
  }
  fs::remove(path);
  EXPECT_THAT(Publisher::Open(Options()).status(),
              StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(PublishedDirectoryTest, DamagedOlderManifestIsSaidWithWhatToDo) {
  {
    ASSERT_OK_AND_ASSIGN(Publisher publisher, Publisher::Open(Options()));
    ASSERT_OK(PublishNext(publisher, 0));
    ASSERT_OK(PublishNext(publisher, 3));
  }
  std::ofstream(Out("weight_v000001/manifest.json")) << "{}";
  testing::internal::CaptureStderr();
  EXPECT_OK(PublishedDirectory::Open(Out()));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr(Out("weight_v000001/manifest.json: is damaged")),
                    HasSubstr("remove it")));
  fs::remove_all(Out("weight_v000001"));
  testing::internal::CaptureStderr();
  EXPECT_OK(PublishedDirectory::Open(Out()));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), IsEmpty());
}

// A name that is no UTF-8 is written as another one.
TEST_F(PublishedDirectoryTest, ManifestThatCouldNotBeReadAgainIsNotWritten) {
  ASSERT_OK_AND_ASSIGN(PublishedDirectory directory,
                       PublishedDirectory::Open(Out()));
  ASSERT_OK(directory.Stage());
  PublishedVersion version = {
      .version = 1,
      .tensors = {{.info = {.name = "caf\xe9", .shape = {1}}, .sha256 = "a"}}};
  EXPECT_THAT(directory.Commit(version),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr(Out("weight_v000001")),
                             HasSubstr("the manifest of its 1 tensors"))));
  EXPECT_EQ(directory.newest(), nullptr);
  EXPECT_FALSE(fs::exists(Out("weight_v000001")));
  version.tensors[0].info.name = "caf\xc3\xa9";
  ASSERT_OK(directory.Stage());
  EXPECT_OK(directory.Commit(version));
  ASSERT_NE(directory.newest(), nullptr);
  EXPECT_EQ(directory.newest()->tensors.size(), 1);
}

}  // namespace
}  // namespace parasol
