#include "tool/publish/state_delta.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/status_matchers.h"
#include "cluster/checkpoint/model/testing/model_checkpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tool/publish/testing/publisher_fixture.h"
#include "zstd.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;

// Tensors of bytes in memory.
class MemoryTensors : public TensorReader {
 public:
  explicit MemoryTensors(const std::map<std::string, std::string>& tensors) {
    for (const auto& [name, bytes] : tensors) {
      tensors_.push_back({.name = name,
                          .type = ElementType::kUint8,
                          .shape = {static_cast<int64_t>(bytes.size())}});
      bytes_.push_back(bytes);
    }
  }

  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  absl::Status Read(size_t tensor, uint64_t first,
                    absl::Span<char> out) override {
    std::copy_n(bytes_[tensor].begin() + first, out.size(), out.begin());
    return absl::OkStatus();
  }

 private:
  std::vector<TensorInfo> tensors_;
  std::vector<std::string> bytes_;
};

std::string Decompressed(const std::string& frame) {
  std::string content(ZSTD_getFrameContentSize(frame.data(), frame.size()), 0);
  EXPECT_EQ(ZSTD_decompress(content.data(), content.size(), frame.data(),
                            frame.size()),
            content.size());
  return content;
}

uint32_t NumberAt(const std::string& text, size_t at) {
  uint32_t number = 0;
  std::memcpy(&number, text.data() + at, sizeof(number));
  return number;
}

// Returns the new bytes as the format says.
std::string Applied(VersionFormat format, std::string bytes,
                    const std::string& content) {
  if (format == VersionFormat::kXor) {
    EXPECT_EQ(content.size(), bytes.size());
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] ^= content[i];
    return bytes;
  }
  const size_t count = NumberAt(content, 0);
  EXPECT_EQ(content.size(), 4 + 5 * count);
  for (size_t i = 0; i < count; ++i) {
    EXPECT_TRUE(i == 0 ||
                NumberAt(content, 4 * i) < NumberAt(content, 4 + 4 * i));
    bytes[NumberAt(content, 4 + 4 * i)] = content[4 + 4 * count + i];
  }
  return bytes;
}

class StateDeltaTest : public ::testing::Test {
 protected:
  // Three pieces and a rest; changes on both sides of their borders.
  StateDeltaTest() {
    before_["large"] = std::string((3 << 20) + 5, 'a');
    before_["same"] = "same";
    before_["small"] = "01234567";
    now_ = before_;
    for (const size_t place : {size_t{0}, (size_t{1} << 20) - 1,
                               size_t{1} << 20, (size_t{3} << 20) + 4}) {
      now_["large"][place] = 'b';
    }
    now_["small"] = "0123x567";
  }

  std::map<std::string, std::string> before_;
  std::map<std::string, std::string> now_;
};

TEST_F(StateDeltaTest, ComparisonCountsBytesThatDiffer) {
  MemoryTensors state(now_);
  MemoryTensors base(before_);
  ASSERT_OK_AND_ASSIGN(const StateComparison comparison,
                       CompareStates(state, &base));
  EXPECT_THAT(comparison.changed, ElementsAre(4, 0, 1));
  EXPECT_EQ(comparison.changed_bytes, 5);
  EXPECT_EQ(comparison.bytes, (3 << 20) + 5 + 4 + 8);
  EXPECT_EQ(comparison.tensors[1].sha256, comparison.base[1].sha256);
  EXPECT_NE(comparison.tensors[2].sha256, comparison.base[2].sha256);
  // Of "same", by `printf same | sha256sum`, and Adler-32 by its definition.
  EXPECT_EQ(comparison.tensors[1].sha256,
            "0967115f2813a3541eaef77de9d9d5773f1c0c04314b0bbfe4ff3b3b1c55b5d5");
  EXPECT_EQ(comparison.adler32[1], 0x043201a7);
  ASSERT_OK_AND_ASSIGN(const StateComparison alone,
                       CompareStates(state, nullptr));
  EXPECT_TRUE(alone.base.empty());
  EXPECT_EQ(alone.changed_bytes, 0);
  EXPECT_EQ(StateDigest(alone.tensors), StateDigest(comparison.tensors));
}

TEST_F(StateDeltaTest, EitherFormMakesTheNewBytesOfTheOld) {
  MemoryTensors state(now_);
  MemoryTensors base(before_);
  ASSERT_OK_AND_ASSIGN(const StateComparison comparison,
                       CompareStates(state, &base));
  for (const VersionFormat format :
       {VersionFormat::kXor, VersionFormat::kOverwrite}) {
    SCOPED_TRACE(std::string(NameOf(format)));
    EXPECT_TRUE(IsWorthEncoding(format, comparison));
    const std::string path = EmptyTestDirectory() + "/delta";
    ASSERT_OK(WriteDelta(format, state, base, comparison, path));
    const auto frames = TensorsAt(path);
    EXPECT_EQ(frames.size(), 2);
    for (const auto& [name, frame] : frames) {
      EXPECT_EQ(Applied(format, before_[name], Decompressed(frame)),
                now_[name]);
    }
    EXPECT_EQ(TextOf(path + ".frames"), "");
  }
}

TEST_F(StateDeltaTest, OverwriteIsNotTriedWhereItIsLarger) {
  now_ = {{"a", "0123456789"}};
  before_ = {{"a", "x1y3456789"}};
  MemoryTensors state(now_);
  MemoryTensors base(before_);
  EXPECT_TRUE(HaveSameTensors(state, base));
  ASSERT_OK_AND_ASSIGN(const StateComparison comparison,
                       CompareStates(state, &base));
  EXPECT_FALSE(IsWorthEncoding(VersionFormat::kOverwrite, comparison));
  EXPECT_TRUE(IsWorthEncoding(VersionFormat::kXor, comparison));
  EXPECT_FALSE(HaveSameTensors(
      state, MemoryTensors(std::map<std::string, std::string>{{"a", "0"}})));
}

}  // namespace
}  // namespace parasol
