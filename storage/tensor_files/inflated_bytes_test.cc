#include "storage/tensor_files/inflated_bytes.h"

#include <algorithm>
#include <string>

#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/durable_file.h"
#include "storage/tensor_files/sized_file.h"
#include "zlib.h"

namespace parasol {
namespace {

std::string Deflated(const std::string& bytes) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8,
                         Z_DEFAULT_STRATEGY),
            Z_OK);
  std::string deflated(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = bytes.size();
  stream.next_out = reinterpret_cast<Bytef*>(deflated.data());
  stream.avail_out = deflated.size();
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  deflated.resize(stream.total_out);
  deflateEnd(&stream);
  return deflated;
}

// The last bytes of zeros come from a match whose input zlib has taken when an
// earlier piece was full.
TEST(InflatedBytesTest, PiecesOfAnySizeEndWhereTheBytesDo) {
  const std::string path = ::testing::TempDir() + "/deflated";
  for (const size_t size :
       {1u, 258u, 4096u, (1u << 20) + 4, (1u << 20) + 700}) {
    const std::string deflated = Deflated(std::string(size, '\0'));
    ASSERT_OK(WriteFileDurably(path, deflated));
    ASSERT_OK_AND_ASSIGN(const SizedFile file, SizedFile::Open(path));
    for (const size_t piece : {size_t{1} << 20, size_t{257}, size_t{100}}) {
      InflatedBytes bytes(file, 0, deflated.size());
      for (size_t offset = 0; offset < size; offset += piece) {
        std::string out(std::min(piece, size - offset), 'x');
        ASSERT_OK(bytes.Read(offset, absl::MakeSpan(out)))
            << size << " in pieces of " << piece;
        ASSERT_EQ(out, std::string(out.size(), '\0'));
      }
      std::string more(1, 'x');
      EXPECT_THAT(bytes.Read(size, absl::MakeSpan(more)),
                  StatusIs(absl::StatusCode::kDataLoss));
    }
  }
}

TEST(InflatedBytesTest, BytesThatEndEarlyAreDamage) {
  const std::string path = ::testing::TempDir() + "/cut";
  const std::string deflated = Deflated(std::string(5000, 'a'));
  ASSERT_OK(WriteFileDurably(path, deflated));
  ASSERT_OK_AND_ASSIGN(const SizedFile file, SizedFile::Open(path));
  for (size_t count = 0; count + 1 < deflated.size(); ++count) {
    InflatedBytes bytes(file, 0, count);
    std::string out(5000, 'x');
    EXPECT_THAT(bytes.Read(0, absl::MakeSpan(out)),
                StatusIs(absl::StatusCode::kDataLoss))
        << count;
  }
}

}  // namespace
}  // namespace parasol
