#include "ml/input/file/known_format.h"

#include <string>

#include "base/crc32c.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/testing/tf_example_writer.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace std::string_literals;

TEST(KnownFormatTest, OtherFormatsAreToldByTheirFirstBytes) {
  struct Case {
    std::string start;
    std::string is;
  };
  const Case cases[] = {
      {"PK\x03\x04\x14\0\0\0\x08\0"s, "is a zip archive"},
      {"PK\x05\x06\0\0"s, "is an empty zip archive"},
      {"PAR1\x15\x04\x15\xa0"s, "is a Parquet file; read it as `parquet`"},
      {"\x28\xb5\x2f\xfd\x04\x58"s, "is packed by zstd; unpack it"},
      {"BZh91AY&SY\x9e"s, "is packed by bzip2"},
      {"\xfd"
       "7zXZ\0\0"s,
       "is packed by xz"},
      {"%PDF-1.7\n", "is a PDF document"},
      {"\x89HDF\r\n\x1a\n\0"s, "is an HDF5 file"},
      {"\x93NUMPY\x01\0v"s, "is a NumPy array"},
      {"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0"s, "is an old Excel"},
      {"Obj\x01\x04\x14"
       "avro"s,
       "is an Avro file"},
      {"ARROW1\0\0"s, "is an Arrow file"},
      {"SQLite format 3\0"s, "is an SQLite"},
      {"\x7f"
       "ELF\x02"s,
       "is a program"},
      {"version https://git-lfs.github.com/spec/v1\n", "is a pointer of Git"},
      {std::string(257, 'a') + "ustar\0"s, "is a tar archive"},
  };
  for (const Case& c : cases) {
    for (const bool is_text : {false, true}) {
      EXPECT_THAT(KnownFormat(c.start, is_text), StartsWith(c.is)) << c.is;
    }
  }
}

TEST(KnownFormatTest, TextsHaveEncodingsThatBinaryFilesMayBeginWith) {
  const std::string utf16 =
      "\xff\xfe"
      "a\0,\0b\0\n\0"s;
  EXPECT_EQ(KnownFormat(utf16, true), "is UTF-16; save it as UTF-8");
  EXPECT_EQ(KnownFormat("\xff\xfe\0\0a\0\0\0"s, true),
            "is UTF-32; save it as UTF-8");
  EXPECT_EQ(KnownFormat("a\0,\0b\0,\0c\0\n\0a\0\n\0"s, true),
            "is UTF-16; save it as UTF-8");
  EXPECT_THAT(KnownFormat("\n<!DOCTYPE HTML><html>", true), HasSubstr("HTML"));
  // The first record of a TFRecord file may have any length.
  EXPECT_EQ(KnownFormat(utf16, false), "");
}

// The beginning of a TFRecord file whose first record has this length.
std::string TfRecordStart(uint64_t length) {
  std::string start = LittleEndianBytes(length, 8);
  return start + LittleEndianBytes(MaskCrc(Crc32cOf(start)), 4);
}

TEST(KnownFormatTest, ATfRecordFileIsKnownByTheChecksumOfItsFirstLength) {
  for (const uint64_t length :
       {uint64_t{0x8b1f}, uint64_t{0x088b1f}, uint64_t{0x18088b1f},
        uint64_t{0x685a42}, uint64_t{0x43524f}, uint64_t{0xffd8ff},
        uint64_t{0x016a624f}, uint64_t{0x04034b50}, uint64_t{0x31524150}}) {
    SCOPED_TRACE(length);
    const std::string start = TfRecordStart(length);
    EXPECT_TRUE(HasTfRecordHeader(start));
    EXPECT_FALSE(IsGzip(start));
    EXPECT_EQ(KnownFormat(start + "record", false), "");
    EXPECT_FALSE(HasTfRecordHeader(start.substr(0, 11)));
  }
  std::string damaged = TfRecordStart(0x685a42);
  damaged[11] ^= 1;
  EXPECT_FALSE(HasTfRecordHeader(damaged));
  EXPECT_THAT(KnownFormat(damaged, false), HasSubstr("bzip2"));
}

TEST(KnownFormatTest, GzipHasItsMethodAndNoReservedFlags) {
  EXPECT_TRUE(IsGzip("\x1f\x8b\x08\0\0\0\0\0\0\x03\x4b\x4c"s));
  EXPECT_TRUE(IsGzip("\x1f\x8b\x08\x1f"s)) << "with a name and a comment";
  EXPECT_TRUE(IsGzip("\x1f\x8b"s)) << "one that is cut off";
  EXPECT_FALSE(IsGzip("\x1f\x8b\0\0"s));
  EXPECT_FALSE(IsGzip("\x1f\x8b\x08\x20"s));
  EXPECT_FALSE(IsGzip("\x1f"s));
  EXPECT_FALSE(IsGzip(""));
  EXPECT_THAT(KnownFormat("\x1f\x8b\x07\0"s, true),
              HasSubstr("packed by gzip, with a damaged header"));
}

TEST(KnownFormatTest, WhatDataSetsHaveIsNone) {
  for (const char* text :
       {"", "a,b,y\n1,2,3\n", "1 3:1\n", "ORC,id\n1,2\n", "BZh,PAR1\n", "PAR1",
        "\xef\xbb\xbf"
        "a,b\n",
        "version,https\n", "{\"a\":1}\n", "PARENT,child\n", "GIF8s;b\n"}) {
    EXPECT_EQ(KnownFormat(text, true), "") << text;
  }
  EXPECT_EQ(KnownFormat(std::string(3073, '\x06'), false), "");
  EXPECT_EQ(KnownFormat("\0\0\x08\x03\0\0\0\x01"s, false), "");
}

}  // namespace
}  // namespace parasol
