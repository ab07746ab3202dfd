#include "cluster/rpc/payload.h"

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

TEST(PayloadViewTest, EveryRangeIsCopiedWhereverThePiecesEnd) {
  const std::string bytes = "0123456789";
  const absl::string_view all = bytes;
  const PayloadView payload(PayloadView::Pieces{
      all.substr(0, 1), all.substr(1, 0), all.substr(1, 5), all.substr(6)});
  ASSERT_EQ(payload.size(), bytes.size());
  for (size_t first = 0; first <= bytes.size(); ++first) {
    for (size_t count = 0; first + count <= bytes.size(); ++count) {
      std::string copy(count, '?');
      payload.CopyTo(first, count, copy.data());
      EXPECT_EQ(copy, bytes.substr(first, count));
      std::vector<std::byte> scratch(count);
      const auto* contiguous = reinterpret_cast<const char*>(
          payload.Contiguous(first, count, scratch.data()));
      EXPECT_EQ(std::string(contiguous, count), bytes.substr(first, count));
    }
  }
}

TEST(PayloadViewTest, BytesInOnePieceAreNotCopied) {
  const std::string a = "abcd", b = "efgh";
  const PayloadView payload(PayloadView::Pieces{a, b});
  std::byte scratch[4];
  const auto* in_b = reinterpret_cast<const std::byte*>(b.data());
  EXPECT_EQ(payload.Contiguous(5, 2, scratch), in_b + 1);
  EXPECT_EQ(payload.Contiguous(4, 4, scratch), in_b);
  EXPECT_EQ(payload.Contiguous(3, 2, scratch), scratch);
}

TEST(PayloadViewTest, AnEmptyPayloadHasNoBytes) {
  EXPECT_EQ(PayloadView().size(), 0u);
  PayloadView().CopyTo(0, 0, nullptr);
}

}  // namespace
}  // namespace parasol
