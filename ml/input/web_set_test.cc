// Data sets of a web server, beside the same ones on this machine: every batch
// and error is the same. No library but libcurl is needed.

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/file/file_set.h"
#include "ml/input/format/raw_columns.h"
#include "ml/input/input_pipeline.h"
#include "ml/input/object/object_cache.h"
#include "ml/input/testing/brought_set_fixture.h"
#include "ml/input/testing/read_all.h"
#include "ml/input/testing/sample_formats.h"
#include "ml/input/web/testing/web_server.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class WebSetTest : public BroughtSetFixture {
 protected:
  static void SetUpTestSuite() { shared_server_ = new WebServer("web_sets"); }
  static void TearDownTestSuite() { delete shared_server_; }
  void SetUp() override {
    server_.SetFaults({});
    BroughtSetFixture::SetUp();
  }

  static inline WebServer* shared_server_ = nullptr;
  const WebServer& server_ = *shared_server_;
};

// Returns the format's data set with the names of its files in place of the
// pattern that stands for all of them.
SampleFormat WithNamesOfFiles(SampleFormat format) {
  std::string names;
  for (size_t i = 0; i < format.files.size(); ++i) {
    absl::StrAppend(&names, "file: 'f", i, "' ");
  }
  format.dataset = absl::StrReplaceAll(format.dataset, {{"file: 'f?'", names}});
  return format;
}

TEST_F(WebSetTest, BatchesOfAllFormatsAreThoseOfFiles) {
  constexpr SetMemory kStored = {
      .whole = 0, .block_bytes = 100, .cache_bytes = 700};
  for (const SampleFormat& pattern : SampleFormats()) {
    SCOPED_TRACE(pattern.name);
    const SampleFormat format = WithNamesOfFiles(pattern);
    const std::string folder = absl::StrReplaceAll(format.name, {{" ", "_"}});
    for (size_t i = 0; i < format.files.size(); ++i) {
      server_.Put(absl::StrCat(folder, "/f", i), format.files[i]);
    }
    const auto here = Read(format, server_.PathOf(folder));
    ASSERT_THAT(here, SizeIs(Ge(4u))) << here.front();
    EXPECT_EQ(Read(format, server_.Url(folder)), here);
    EXPECT_EQ(Read(format, server_.Url(folder), kStored), here);
    std::filesystem::remove_all(copies_);
    // A server as Python's own.
    server_.SetFaults({R"({"request": "GET .*", "times": -1, "do": "whole"})"});
    for (size_t i = 0; i < format.files.size(); ++i) {
      server_.Put(absl::StrCat("plain/", folder, "/f", i), format.files[i]);
    }
    EXPECT_EQ(Read(format, server_.Url(absl::StrCat("plain/", folder))), here);
    server_.SetFaults({});
  }
}

TEST_F(WebSetTest, ErrorsNameTheFileAndShowWhatToDo) {
  const SampleFormat format = {
      .name = "csv",
      .files = {},
      .dataset = "csv { file: 'x1.csv' label { column: 'y' } }",
      .model = kColumnsModel};
  server_.Put("d/x1.csv", "a,c,y\n1,2,3\nq,2,3\n");
  EXPECT_THAT(
      Read(format, server_.Url("d")),
      Contains(AllOf(HasSubstr(server_.Url("d/x1.csv")), HasSubstr("line 3"))));
  EXPECT_THAT(Read(format, server_.Url("gone")),
              ElementsAre(AllOf(HasSubstr(server_.Url("gone/x1.csv")),
                                HasSubstr("no such file"))));
  server_.Put("zip/x1.csv", "PK\x03\x04 and so on");
  EXPECT_THAT(Read(format, server_.Url("zip")),
              ElementsAre(HasSubstr("zip archive")));
  for (const char* pattern : {"x*.csv", "x?.csv", "x[1].csv"}) {
    EXPECT_THAT(FindFiles(server_.Url("d"), {pattern}, "train.csv.file"),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("name each file")));
  }
  EXPECT_THAT(
      FindFiles("", {"https://me:hidden@host/x"}, "train.csv.file"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("credentials"), Not(HasSubstr("hidden")))));
}

TEST_F(WebSetTest, ASampleBringsNothing) {
  std::string file = "a,c,y\n";
  while (file.size() < (8 << 20)) {
    absl::StrAppend(&file, "1.5,some words in a row ", file.size(), ",1\n");
  }
  server_.Put("large/x.csv", file);
  server_.Put("large/x.csv.gz", Gzip(file));
  for (const char* name : {"x.csv", "x.csv.gz"}) {
    const auto dataset = FromText<job::Dataset>(
        absl::StrCat("csv { file: '", name, "' label { column: 'y' } }"));
    ASSERT_OK_AND_ASSIGN(
        const auto sample,
        RawColumns::Open(dataset, server_.Url("large"), {}, 1 << 20));
    ASSERT_OK_AND_ASSIGN(
        const auto here,
        RawColumns::Open(dataset, server_.PathOf("large"), {}, 1 << 20));
    EXPECT_TRUE(sample->is_sample());
    EXPECT_EQ(sample->size(), here->size());
    EXPECT_THAT(Copies(), IsEmpty());
  }
}

}  // namespace
}  // namespace parasol
