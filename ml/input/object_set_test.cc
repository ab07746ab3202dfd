// Data sets in an object store, beside the same ones on this machine: every
// batch and error is the same.

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/format/dataset_columns.h"
#include "ml/input/format/raw_columns.h"
#include "ml/input/input_pipeline.h"
#include "ml/input/object/object_cache.h"
#include "ml/input/object/testing/object_servers.h"
#include "ml/input/testing/arrow_environment.h"
#include "ml/input/testing/brought_set_fixture.h"
#include "ml/input/testing/read_all.h"
#include "ml/input/testing/sample_formats.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::SizeIs;

class ObjectSetTest : public BroughtSetFixture,
                      public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    if (const std::string lacks = ArrowLacks(); !lacks.empty()) {
      GTEST_SKIP() << lacks;
    }
    server_ = StartObjectServer(GetParam(), "objects");
    BroughtSetFixture::SetUp();
  }

  std::unique_ptr<ObjectServer> server_;
};

TEST_P(ObjectSetTest, BatchesOfAllFormatsAreThoseOfFiles) {
  constexpr SetMemory kStored = {
      .whole = 0, .block_bytes = 100, .cache_bytes = 700};
  for (const SampleFormat& format : SampleFormats()) {
    SCOPED_TRACE(format.name);
    for (size_t i = 0; i < format.files.size(); ++i) {
      server_->Put(absl::StrCat(format.name, "/f", i), format.files[i]);
    }
    const std::string folder = server_->PathOf(format.name);
    const std::string data_dir = server_->Uri(format.name);
    const auto here = Read(format, folder);
    ASSERT_THAT(here, SizeIs(Ge(4u))) << here.front();
    server_->ForgetRequests();
    EXPECT_EQ(Read(format, data_dir), here);
    EXPECT_EQ(Read(format, data_dir, kStored), here);
    for (const std::string& file : server_->Requests("GET /b/")) {
      EXPECT_THAT(server_->Requests(file), SizeIs(1));
    }
  }
}

TEST_P(ObjectSetTest, BatchesOfParquetFilesAreThoseOfFiles) {
  const SampleFormat format = {
      .name = "parquet",
      .files = {},
      .dataset =
          "parquet { file: 'snappy.parquet' label { column: 'clicked' "
          "positive: 'yes' } }",
      .model =
          "loss { binary_crossentropy {} } input { name: 'a' dense { "
          "column { name: 'age' default_value: 1 } } }"};
  const std::string folder = "ml/input/arrow/testdata";
  std::ifstream file(folder + "/snappy.parquet", std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  server_->Put("d/snappy.parquet", bytes.str());
  const auto here = Read(format, folder);
  ASSERT_THAT(here, SizeIs(Ge(4u))) << here.front();
  const auto columns = [&](const std::string& data_dir) {
    return ReadColumns(FromText<job::Dataset>(format.dataset), data_dir)->names;
  };
  EXPECT_EQ(columns(server_->Uri("d")), columns(folder));
  EXPECT_THAT(Copies(), IsEmpty());
  EXPECT_EQ(Read(format, server_->Uri("d")), here);
  EXPECT_THAT(Copies(), SizeIs(1));
}

TEST_P(ObjectSetTest, ErrorsNameTheObject) {
  const SampleFormat format = {
      .name = "csv",
      .files = {},
      .dataset = "csv { file: 'x*.csv' label { column: 'y' } }",
      .model = kColumnsModel};
  server_->Put("d/x1.csv", "a,c,y\n1,2,3\nq,2,3\n");
  EXPECT_THAT(Read(format, server_->Uri("d")),
              testing::Contains(AllOf(HasSubstr(server_->Uri("d/x1.csv")),
                                      HasSubstr("line 3"))));
  EXPECT_THAT(Read(format, server_->Uri("gone")),
              ElementsAre(HasSubstr(server_->Name("gone/x*.csv"))));
  server_->Put("zip/x1.csv", "PK\x03\x04 and so on");
  EXPECT_THAT(Read(format, server_->Uri("zip")),
              ElementsAre(AllOf(HasSubstr(server_->Name("zip/x1.csv")),
                                HasSubstr("zip archive"))));
  const SampleFormat array = {.name = "npz",
                              .files = {},
                              .dataset = "array { file: 'x1.csv' label: 'y' }",
                              .model = kColumnsModel};
  EXPECT_THAT(Read(array, server_->Uri("d")),
              ElementsAre(HasSubstr(server_->Name("d/x1.csv"))));
}

TEST_P(ObjectSetTest, ASampleBringsNothing) {
  std::string file = "a,c,y\n";
  while (file.size() < (20 << 20)) {
    absl::StrAppend(&file, "1.5,some words in a row ", file.size(), ",1\n");
  }
  server_->Put("large/x.csv", file);
  const auto dataset =
      FromText<job::Dataset>("csv { file: 'x.csv' label { column: 'y' } }");
  ASSERT_OK_AND_ASSIGN(const auto names,
                       ReadColumns(dataset, server_->Uri("large")));
  EXPECT_THAT(names.names, ElementsAre("a", "c", "y"));
  ASSERT_OK_AND_ASSIGN(
      const auto sample,
      RawColumns::Open(dataset, server_->Uri("large"), {}, 1 << 20));
  EXPECT_TRUE(sample->is_sample());
  EXPECT_THAT(server_->Reads("large/x.csv"), SizeIs(Le(4u)));
  EXPECT_THAT(Copies(), IsEmpty());
}

TEST_P(ObjectSetTest, WhatIsPackedIsReadFromItsStart) {
  std::string file = "a,c,y\n";
  while (file.size() < (2 << 20)) {
    absl::StrAppend(&file, file.size() * 7919, ",", file.size(), ",1\n");
  }
  server_->Put("packed/x.csv.gz", Gzip(file));
  const auto dataset =
      FromText<job::Dataset>("csv { file: 'x.csv.gz' label { column: 'y' } }");
  ASSERT_OK_AND_ASSIGN(
      const auto sample,
      RawColumns::Open(dataset, server_->Uri("packed"), {}, 100 << 10));
  ASSERT_OK_AND_ASSIGN(
      const auto here,
      RawColumns::Open(dataset, server_->PathOf("packed"), {}, 100 << 10));
  EXPECT_EQ(sample->size(), here->size());
  EXPECT_THAT(Copies(), IsEmpty());
}

// A copy that is removed while a set is read is as a file that is removed.
TEST_P(ObjectSetTest, ACopyThatIsGoneIsBroughtAgain) {
  const SampleFormat format = CsvSample();
  for (size_t i = 0; i < format.files.size(); ++i) {
    server_->Put(absl::StrCat("again/f", i), format.files[i]);
  }
  const auto first = Read(format, server_->Uri("again"));
  for (const std::string& copy : Copies()) fs::remove(copy);
  EXPECT_EQ(Read(format, server_->Uri("again")), first);
  EXPECT_THAT(Copies(), SizeIs(3));
}

INSTANTIATE_TEST_SUITE_P(Servers, ObjectSetTest, ObjectServerKinds(),
                         ObjectServerName);

}  // namespace
}  // namespace parasol
