#include "tool/publish/zstd_frame.h"

#include <algorithm>
#include <cstddef>
#include <random>
#include <string>

#include "base/status_matchers.h"
#include "cluster/checkpoint/model/testing/model_checkpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/durable_file.h"
#include "zstd.h"

namespace parasol {
namespace {

std::string RandomText(size_t bytes) {
  std::mt19937 random(1);
  std::string text(bytes, 0);
  for (char& c : text) c = static_cast<char>(random() % 16);
  return text;
}

// Returns what the frame holds that begins at `begin`, and moves that behind
// it.
std::string ContentAt(const std::string& file, size_t& begin) {
  const char* const frame = file.data() + begin;
  const size_t bytes = ZSTD_findFrameCompressedSize(frame, file.size() - begin);
  EXPECT_FALSE(ZSTD_isError(bytes));
  // The frame says it.
  std::string content(ZSTD_getFrameContentSize(frame, bytes), 0);
  EXPECT_EQ(ZSTD_decompress(content.data(), content.size(), frame, bytes),
            content.size());
  begin += bytes;
  return content;
}

TEST(ZstdFrameTest, FramesHoldWhatWasAddedPieceByPiece) {
  const std::string path = EmptyTestDirectory() + "/frames";
  const std::string large = RandomText(3'000'001);
  ASSERT_OK_AND_ASSIGN(StagedFile file, StagedFile::Create(path));
  for (const std::string& content : {large, std::string(), std::string("x")}) {
    ZstdFrame frame(content.size(), file);
    for (size_t begin = 0; begin < content.size(); begin += 100'003) {
      ASSERT_OK(frame.Add(content.substr(begin, 100'003)));
    }
    ASSERT_OK(frame.Finish());
  }
  ASSERT_OK(file.Commit());
  ASSERT_OK_AND_ASSIGN(const std::string bytes, ReadFile(path, 1 << 24));
  EXPECT_LT(bytes.size(), large.size() * 2 / 3);
  size_t begin = 0;
  EXPECT_EQ(ContentAt(bytes, begin), large);
  EXPECT_EQ(ContentAt(bytes, begin), "");
  EXPECT_EQ(ContentAt(bytes, begin), "x");
  EXPECT_EQ(begin, bytes.size());
}

TEST(ZstdFrameTest, ContentOfAnotherLengthIsAnError) {
  ASSERT_OK_AND_ASSIGN(StagedFile file,
                       StagedFile::Create(EmptyTestDirectory() + "/frames"));
  ZstdFrame shorter(3, file);
  ASSERT_OK(shorter.Add("ab"));
  EXPECT_THAT(shorter.Finish(), StatusIs(absl::StatusCode::kInternal));
  ZstdFrame longer(3, file);
  const absl::Status added = longer.Add("abcd");
  EXPECT_THAT(added.ok() ? longer.Finish() : added,
              StatusIs(absl::StatusCode::kInternal));
}

}  // namespace
}  // namespace parasol
